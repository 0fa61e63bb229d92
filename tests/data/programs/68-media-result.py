picture_ = await picture("logo")
print(picture_.mime_type, picture_.kind, len(picture_.data), picture_.data[:4])
print(type(picture_.data).__name__)
