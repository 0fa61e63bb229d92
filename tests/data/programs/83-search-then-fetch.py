hits = await search_docs("policy", limit=2)
for hit in hits:
    print(f"{hit['score']:.1f} {hit['title']}")
best = max(hits, key=lambda hit: hit["score"])
print(best["content"][:40])
print(len(await search_docs(query="nothing like this")))
