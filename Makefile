.PHONY: help
help:
	@echo "make demo | test | test-system | check | bench | lock"
