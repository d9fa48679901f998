"""The public API, version 1: the numbers of the pages as JSON."""

from ninja import NinjaAPI

from leaderboard.api.rankings import router

# No docs page: it would load scripts from elsewhere. The schema is at openapi.json.
api = NinjaAPI(title="MetaKernelBench", version="1", docs_url=None, urls_namespace="api-1")
api.add_router("", router)
