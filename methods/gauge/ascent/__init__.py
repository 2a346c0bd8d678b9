"""The maximisations behind gauged bounds: objectives, derivatives, Newton steps and continuations."""
