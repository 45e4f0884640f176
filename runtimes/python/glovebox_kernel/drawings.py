"""Figures of the drawing libraries, as their own JSON. Nothing here imports a library: the value's is there already."""

import json
import re


def drawing_bundle(value):
    kind = type(value)
    names = {base.__module__ + "." + base.__qualname__ for base in kind.__mro__ if isinstance(base.__module__, str)}
    if "plotly.basedatatypes.BaseFigure" in names:
        return {"application/vnd.plotly.v1+json": json.loads(value.to_json())}
    if kind.__module__.split(".")[0] == "altair" and hasattr(value, "to_dict"):
        return altair_bundle(value)
    if "matplotlib.figure.Figure" in names:
        from glovebox_kernel.figures import figure_bundle

        return figure_bundle(value)
    if "PIL.Image.Image" in names:
        return picture_bundle(value)
    return {}


def altair_bundle(chart):
    told = chart.to_dict()
    schema = re.search(r"/vega-lite/v(\d+)", str(told.get("$schema", "")))
    return {"application/vnd.vegalite.v%s+json" % (schema.group(1) if schema else "5"): told}


def picture_bundle(picture):
    """As PNG only: its class also offers JPEG, which would be the same twice."""
    import io

    if picture.mode not in ("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"):
        picture = picture.convert("RGB")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return {"image/png": out.getvalue()}
