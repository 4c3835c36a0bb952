package awssim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// zone is an availability zone. The IDs do not follow the order of the letters, as in most accounts.
type zone struct {
	name string // such as us-east-1a
	id   string // such as use1-az2
}

// securityGroup is a group of a VPC.
type securityGroup struct {
	id, name, vpc string
	tags          map[string]string
}

// subnet assigns its addresses.
type subnet struct {
	id, vpc string
	zone    *zone
	prefix  netip.Prefix
	public  bool
	tags    map[string]string
	used    int        // by instances
	taken   int        // taken by TakeAddresses
	next    netip.Addr // the first address that was never assigned
	back    []netip.Addr
}

// free returns the number of free addresses. AWS reserves five of each subnet.
// https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
func (s *subnet) free() int { return max(1<<(32-s.prefix.Bits())-5-s.used-s.taken, 0) }

// address assigns an address. The caller has counted it.
func (s *subnet) address() netip.Addr {
	if n := len(s.back); n > 0 {
		a := s.back[n-1]
		s.back = s.back[:n-1]
		return a
	}
	a := s.next
	s.next = a.Next()
	return a
}

// layNetwork creates the zones and two VPCs: the cluster's, and an unrelated one.
func (c *Cloud) layNetwork() {
	letters := map[string]bool{}
	for _, t := range c.types {
		for _, letter := range t.Zones[c.opts.Region] {
			letters[string(letter)] = true
		}
	}
	var names []string
	for letter := range letters {
		names = append(names, letter)
	}
	slices.Sort(names)
	for _, letter := range names {
		c.zones = append(c.zones, &zone{name: c.opts.Region + letter})
	}
	c.numberZones()
	vpc, other := c.newID("vpc"), c.newID("vpc")
	name := c.opts.Cluster.Name
	discovery := func(label string) map[string]string {
		return map[string]string{"karpenter.sh/discovery": name, "Name": name + "-" + label, "kubernetes.io/cluster/" + name: "owned"}
	}
	for k, z := range c.zones {
		c.addSubnet(vpc, z, netip.AddrFrom4([4]byte{10, 0, byte(32 * k), 0}), false, discovery("private-"+z.name))
		public := map[string]string{"Name": name + "-public-" + z.name, "kubernetes.io/role/elb": "1"}
		c.addSubnet(vpc, z, netip.AddrFrom4([4]byte{10, 1, byte(32 * k), 0}), true, public)
	}
	c.addSubnet(other, c.zones[0], netip.AddrFrom4([4]byte{172, 31, 0, 0}), true, map[string]string{"Name": "elsewhere"})
	groupName := "eks-cluster-sg-" + name
	c.groups = []*securityGroup{
		{c.newID("sg"), "default", vpc, map[string]string{}},
		{c.newID("sg"), groupName, vpc, discovery("nodes")},
		{c.newID("sg"), groupName, other, map[string]string{"Name": "elsewhere"}},
		{c.newID("sg"), "default", other, map[string]string{}},
	}
}

// numberZones assigns IDs to the zones in an order other than that of their letters: odd positions first.
func (c *Cloud) numberZones() {
	n := 1
	for start := 1; start >= 0; start-- {
		for k := start; k < len(c.zones); k += 2 {
			c.zones[k].id = fmt.Sprintf("%s-az%d", regions[c.opts.Region], n)
			n++
		}
	}
}

func (c *Cloud) addSubnet(vpc string, z *zone, base netip.Addr, public bool, tags map[string]string) {
	prefix := netip.PrefixFrom(base, c.opts.SubnetBits)
	next := base.Next().Next().Next().Next() // AWS reserves the first four
	c.subnets = append(c.subnets, &subnet{id: c.newID("subnet"), vpc: vpc, zone: z, prefix: prefix, public: public, tags: tags, next: next})
}

func (c *Cloud) subnet(id string) *subnet {
	k := slices.IndexFunc(c.subnets, func(s *subnet) bool { return s.id == id })
	if k < 0 {
		return nil
	}
	return c.subnets[k]
}

func (c *Cloud) group(id string) *securityGroup {
	k := slices.IndexFunc(c.groups, func(g *securityGroup) bool { return g.id == id })
	if k < 0 {
		return nil
	}
	return c.groups[k]
}

// zonesOf returns the zones that offer a type.
func (c *Cloud) zonesOf(t *machineType) []*zone {
	var zones []*zone
	for _, z := range c.zones {
		if strings.Contains(t.Zones[c.opts.Region], z.name[len(z.name)-1:]) {
			zones = append(zones, z)
		}
	}
	return zones
}

// TakeAddresses reserves addresses of a subnet for something other than an instance, such as pods. A negative number
// releases them.
func (c *Cloud) TakeAddresses(subnetID string, n int) error {
	var err error
	c.locked(func(time.Time) {
		s := c.subnet(subnetID)
		if s == nil {
			err = fmt.Errorf("no subnet %q", subnetID)
			return
		}
		s.taken = max(s.taken+n, 0)
	})
	return err
}

// Subnet is a subnet of the cloud.
type Subnet struct {
	ID     string            `json:"id"`
	VPC    string            `json:"vpc"`
	Zone   string            `json:"zone"`
	ZoneID string            `json:"zoneId"`
	Free   int               `json:"free"` // free addresses
	Public bool              `json:"public"`
	Tags   map[string]string `json:"tags"`
}

// Subnets returns all subnets, those of the cluster's VPC first.
func (c *Cloud) Subnets() []Subnet {
	var subnets []Subnet
	c.locked(func(time.Time) {
		for _, s := range c.subnets {
			subnets = append(subnets, Subnet{s.id, s.vpc, s.zone.name, s.zone.id, s.free(), s.public, s.tags})
		}
	})
	return subnets
}
