"""`spinbench.mixing`: after how many sweeps a sampler's law is close to the model.

* `assess`: `mixing`, which runs pairs of coupled chains until they have met, or a budget is spent;
* `meeting`: what their meeting times say of the distance in total variation.
"""
