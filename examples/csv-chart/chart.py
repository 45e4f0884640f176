import pandas as pd

sales = pd.read_csv('sales.csv').pivot(index='month', columns='region', values='sales')
chart = sales.plot.bar(title='Sales by region', ylabel='sales (k€)', rot=0)
sales.sum().to_csv('totals.csv')
sales.sum()
