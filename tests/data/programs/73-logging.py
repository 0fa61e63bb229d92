import logging

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("report")
log.info("loading %d", 3)
log.debug("hidden")
try:
    await fail(message="bad")
except ToolError as error:
    log.error("failed: %s", error)
print("end")
