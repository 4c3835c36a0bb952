package instance

import "github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"

// Limits for the number of pods per node.
const (
	windowsPods = 110
	// prefixAddresses is the number of addresses that EKS counts per prefix, those of a /28 (source:
	// max-pods-calculator.sh of the EKS AMI).
	prefixAddresses = 16
	// The maximum number of pods on a node with prefixes, by vCPUs: the kubelet, not the network, is the limit then
	// (source: max-pods-calculator.sh of the EKS AMI).
	smallPods, largePods, smallVCPUs = 110, 250, 30
	// hostPods is the number of pods that use the node's address: the VPC CNI itself and kube-proxy.
	hostPods = 2
)

// pods returns the maximum number of pods in the kubelet's configuration.
func (c *Class) pods(t *catalog.Type, f *family, s *Settings) int64 {
	n := c.unlimitedPods(t, f, s)
	if c.Kubelet.PodsPerCore > 0 && f.podsPerCore {
		n = min(n, c.Kubelet.PodsPerCore*t.VCPUs)
	}
	return n
}

// unlimitedPods returns the number of pods without podsPerCore.
func (c *Class) unlimitedPods(t *catalog.Type, f *family, s *Settings) int64 {
	switch {
	case c.Kubelet.MaxPods != nil:
		return *c.Kubelet.MaxPods
	case f.windows():
		return c.windowsNetworkPods(t)
	}
	return c.networkPods(t, s)
}

// networkPods returns the number of pods for which the network interfaces of the type have addresses, without the
// reserved interfaces. IPv6 addresses are assigned as prefixes, and IPv4 addresses if the class says so. Only instances
// on Nitro have prefixes (source: EKS User Guide, "Assign more IP addresses to Amazon EKS nodes with prefixes").
func (c *Class) networkPods(t *catalog.Type, s *Settings) int64 {
	reserved := s.ReservedENIs + c.efaOnlyOnCard0()
	if !s.IPv6 && !c.PrefixDelegation || t.Hypervisor == catalog.HypervisorXen {
		return eniPods(t, reserved)
	}
	usable := t.PrimaryENIs() - reserved
	if usable <= 0 {
		return 0
	}
	most := int64(smallPods)
	if t.VCPUs > smallVCPUs {
		most = largePods
	}
	return min(most, usable*(t.IPv4PerENI-1)*prefixAddresses+hostPods)
}

// eniPods counts the secondary addresses of the interfaces on the default network card. The first address of each
// interface is its own (source: EKS User Guide, "Amazon EKS recommended maximum Pods for each Amazon EC2 instance
// type").
func eniPods(t *catalog.Type, reserved int64) int64 {
	usable := t.PrimaryENIs() - reserved
	if usable <= 0 {
		return 0
	}
	return usable*(t.IPv4PerENI-1) + hostPods
}

// efaOnlyOnCard0 counts the interfaces of the class that are on the default card and provide no address.
func (c *Class) efaOnlyOnCard0() int64 {
	var n int64
	for _, i := range c.Interfaces {
		if i.EFAOnly && i.Card == 0 {
			n++
		}
	}
	return n
}
