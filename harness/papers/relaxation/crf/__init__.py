"""The skip-chain conditional random field of the text experiment (Zhang et al., NIPS 2012, section 5, table 1).

Seminar announcements whose speakers' names are tagged; each token is a binary variable, 1 where it belongs to the
speaker's name. Besides the chain of neighbouring tokens, all pairs of equal capitalised tokens are coupled (Sutton and
McCallum, "Collective segmentation and labeling of distant entities in information extraction", 2004).
"""
