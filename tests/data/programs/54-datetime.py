from datetime import date, datetime, timedelta, timezone

orders = (await list_orders(limit=50))["orders"]
days = [date.fromisoformat(order["date"]) for order in orders]
print(min(days), max(days), (max(days) - min(days)).days)
print(max(days).strftime("%A %d %B %Y"), max(days).isocalendar()[1])
moment = datetime(2024, 2, 28, 23, 30, tzinfo=timezone.utc) + timedelta(hours=1)
print(moment.isoformat(), moment.astimezone(timezone(timedelta(hours=2))).isoformat(), timedelta(days=1.5))
