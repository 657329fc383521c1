# The recipes that people and CI use. `make` lists them.

.PHONY: help demo test test-fast model soak bench lint golden images

help: ## list the recipes
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## a local cluster with spiderpool on it, shown step by step (or your own cluster: KUBECONFIG=…)
	@dev/demo

test: ## everything that a fresh machine can run, with a real cluster
	@dev/test

test-fast: ## the inner loop: seconds, no cluster
	@cargo test --quiet --workspace

model: ## the flows of addresses through a million steps (MODEL_STEPS, MODEL_SEED)
	@MODEL_STEPS=$${MODEL_STEPS:-1000000} cargo test --quiet -p ipam-core --test model -- --nocapture

soak: ## half an hour of pods and kills on a cluster, then a consistency check (CHURN_MINUTES, CHURN_SEED)
	@dev/soak

bench: ## figures, measured on this machine now
	@dev/bench

lint: ## format, clippy, licences
	@dev/lint

golden: ## write the golden files anew, for review
	@PATH="$$(dev/binaries/build helm):$$PATH" INSTA_UPDATE=always cargo test --quiet --workspace --features tests/helm --test crds --test chart

images: ## the images as archives to load or push
	@dev/images/spiderpool
