package model

// StaticBlock returns the reason for which no nodes are launched for pods from a pool with a fixed number of nodes.
func StaticBlock() *Rejection {
	return &Rejection{Field: "spec.replicas", Reason: "the pool is static: its nodes do not follow pending pods"}
}

// Standing reports whether the pool has a fixed number of nodes and may launch them: nothing else blocks it.
func (p *PoolSpec) Standing() bool {
	return p.Static && (p.Blocked == nil || *p.Blocked == *StaticBlock())
}
