"""A cluster of one machine, for tests: network namespaces as pods, the rules of NetworkPolicies, a Job controller.

It knows what the manifests of this project use and raises on anything else, so that no rule is passed over in silence.
"""
