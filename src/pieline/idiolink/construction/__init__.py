"""IdioLink's construction (section 3.2): from MAGPIE to a validated, split data set.

`pie_filter` selects PIEs, `generation` has their texts written, `votes` has them judged,
`corrections` takes in what people changed, `splits` divides the PIEs, `assembly` puts the data set
together, and `checks` looks at any IdioLink data, ours or the released.
"""
