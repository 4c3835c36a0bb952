package awssim

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Instance is the public state of an instance. The hook creates a Node from it.
type Instance struct {
	ID             string            `json:"id"`
	Type           string            `json:"instanceType"`
	Zone           string            `json:"zone"`
	ZoneID         string            `json:"zoneId"`
	Region         string            `json:"region"`
	CapacityType   string            `json:"capacityType"` // on-demand or spot
	State          string            `json:"state"`
	SubnetID       string            `json:"subnetId"`
	PrivateDNSName string            `json:"privateDnsName"`
	PrivateIP      string            `json:"privateIp"`
	ImageID        string            `json:"imageId"`
	ImageFamily    string            `json:"imageFamily"` // as in ReleaseImages; empty for images of the account
	Kubernetes     string            `json:"kubernetes"`  // minor version that the image is for
	Architecture   string            `json:"architecture"`
	UserData       []byte            `json:"userData"` // from the launch template, decoded
	Profile        string            `json:"instanceProfile"`
	SecurityGroups []string          `json:"securityGroups"`
	Tags           map[string]string `json:"tags"`
	Launched       time.Time         `json:"launched"`
	// VCPUs and the following fields are the hardware that a kubelet reports.
	VCPUs         int `json:"vcpus"`
	MemoryMiB     int `json:"memoryMiB"`
	ENIs          int `json:"enis"` // the maximum number on the first network card
	IPv4PerENI    int `json:"ipv4PerEni"`
	GPUs          int `json:"gpus"`
	RootGiB       int `json:"rootGiB"`       // size of the root volume
	PodsGiB       int `json:"podsGiB"`       // size of the volume with the storage of pods: the last one of the image
	InstanceStore int `json:"instanceStore"` // total GB of local disks
	// PlacementGroup is the ID of the instance's placement group, and Partition its partition, 0 without one.
	PlacementGroup string `json:"placementGroup,omitempty"`
	Partition      int    `json:"partition,omitempty"`
}

// States of an instance. Their codes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html
const (
	pending      = "pending"
	running      = "running"
	shuttingDown = "shutting-down"
	terminated   = "terminated"
)

var stateCodes = map[string]int{pending: 0, running: 16, shuttingDown: 32, terminated: 48}

// instance is an instance with its history.
type instance struct {
	Instance
	reservation string
	token       string // the client token of the launch
	capacity    string // the instance's capacity reservation
	spotRequest string
	spec        *launchSpec
	subnet      *subnet
	placement   *PlacementGroup
	from        pool
	address     netip.Addr
	volumes     []attached
	enis        []attached
	history     []change
	tagged      []tagging
	interrupted bool
	reason      string // code of the state reason
	impaired    time.Time
	impairment  string // see Impair
	events      []statusEvent
}

// attached is a volume or interface of an instance.
type attached struct {
	id, name string
	index    int
	spec     interfaceSpec
	delete   bool
}

// change is a state from a time onwards.
type change struct {
	at    time.Time
	state string
}

// tagging is a write of a tag.
type tagging struct {
	at         time.Time
	key, value string
}

// pool returns the instance's capacity pool.
func (i *instance) pool() pool { return i.from }

func (i *instance) state() string { return i.history[len(i.history)-1].state }

func (i *instance) alive() bool { return i.state() == pending || i.state() == running }

// stateAt returns the state as of the given time, and an empty string before the launch.
func (i *instance) stateAt(seen time.Time) string {
	state := ""
	for _, c := range i.history {
		if !c.at.After(seen) {
			state = c.state
		}
	}
	return state
}

// tagsAt returns the tags as of the given time.
func (i *instance) tagsAt(seen time.Time) map[string]string {
	tags := maps.Clone(i.Tags)
	for _, t := range i.tagged {
		if !t.at.After(seen) {
			tags[t.key] = t.value
		}
	}
	return tags
}

// public returns the public state of the instance.
func (i *instance) public(now time.Time) Instance {
	p := i.Instance
	p.State, p.Tags = i.state(), i.tagsAt(now)
	p.SecurityGroups, p.UserData = slices.Clone(p.SecurityGroups), slices.Clone(p.UserData)
	return p
}

// launch creates an instance. The caller has checked the capacity and holds the lock.
func (c *Cloud) launch(o *override, f *fleetRequest, s *subnet, now time.Time) *instance {
	t, spec := c.types[o.name], o.spec
	imageID := o.image
	defaultTo(&imageID, spec.image)
	img := c.image(imageID)
	address := s.address()
	i := &instance{
		Instance: Instance{
			ID: c.newID("i"), Type: o.name, Zone: s.zone.name, ZoneID: s.zone.id, Region: c.opts.Region,
			CapacityType: o.pool.capacity, SubnetID: s.id, PrivateIP: address.String(),
			PrivateDNSName: c.dnsName(address), ImageID: imageID, ImageFamily: img.variant.family, Kubernetes: img.variant.kubernetes,
			Architecture: img.arch,
			UserData:     spec.userData, Profile: spec.profileName, SecurityGroups: c.groupsOf(spec, s), Tags: f.instanceTags(o), Launched: now,
			VCPUs: t.VCPU, MemoryMiB: t.MemMiB, ENIs: t.enisOn(0), IPv4PerENI: t.IPv4, InstanceStore: t.storageGB(),
		},
		reservation: "r-" + c.newID("r")[2:], token: f.token, spec: spec, subnet: s, from: o.pool, address: address,
		history:   []change{{now, pending}},
		placement: c.placementOf(spec),
	}
	if i.Partition = c.partitionOf(spec, i.Zone); i.placement != nil {
		i.PlacementGroup = i.placement.ID
	}
	if t.GPU != nil {
		i.GPUs = t.GPU.Count
	}
	if o.pool.capacity == spot {
		i.spotRequest = "sir-" + c.newID("s")[12:]
	}
	s.used += spec.addresses()
	c.enter(i, c.reservationOf(o))
	c.attach(i, img)
	c.instances[i.ID] = i
	c.order = append(c.order, i)
	c.boot(i, now)
	return i
}

// boot schedules the instance's start and the execution of its user data, or its failure if FailBoots applies.
func (c *Cloud) boot(i *instance, now time.Time) {
	c.announce(i, now)
	if c.failBoots > 0 {
		c.failBoots--
		c.after(now, c.vary(c.opts.Timing.Pending), func(now time.Time) { c.terminate(i, now, "Client.InternalError") })
		return
	}
	c.after(now, c.vary(c.opts.Timing.Pending), func(now time.Time) {
		if i.state() != pending {
			return
		}
		c.turn(i, running, now)
		c.after(now, c.vary(c.opts.Timing.Boot), func(now time.Time) {
			if i.state() == running {
				c.notify(func(h Hook) func(Instance) { return h.Booted }, i, now)
			}
		})
	})
}

// turn changes the state and emits the event. The caller holds the lock.
func (c *Cloud) turn(i *instance, state string, now time.Time) {
	i.history = append(i.history, change{now, state})
	c.announce(i, now)
}

// terminate schedules the termination of an instance. reason is one of EC2's state reasons. The caller holds the lock.
func (c *Cloud) terminate(i *instance, now time.Time, reason string) {
	if !i.alive() {
		return
	}
	i.reason = reason
	c.turn(i, shuttingDown, now)
	c.after(now, c.vary(c.opts.Timing.ShuttingDown), func(now time.Time) {
		c.turn(i, terminated, now)
		i.subnet.used -= i.spec.addresses()
		i.subnet.back = append(i.subnet.back, i.address)
		c.leave(i)
		c.notify(func(h Hook) func(Instance) { return h.Gone }, i, now)
		c.after(now, c.opts.Timing.Forgotten, func(time.Time) {
			delete(c.instances, i.ID)
			c.order = slices.DeleteFunc(c.order, func(o *instance) bool { return o == i })
		})
	})
}

// dnsName returns EC2's private DNS name for an address.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/hostname-types.html
func (c *Cloud) dnsName(a netip.Addr) string {
	host := "ip-" + strings.ReplaceAll(a.String(), ".", "-")
	if c.opts.Region == "us-east-1" {
		return host + ".ec2.internal"
	}
	return host + "." + c.opts.Region + ".compute.internal"
}

// groupsOf returns the groups of the primary interface: those in the spec, or the VPC's default group.
func (c *Cloud) groupsOf(spec *launchSpec, s *subnet) []string {
	groups := spec.groups
	if len(spec.interfaces) > 0 {
		groups = spec.interfaces[0].groups
	}
	if len(groups) > 0 {
		return slices.Clone(groups)
	}
	for _, g := range c.groups {
		if g.vpc == s.vpc && g.name == "default" {
			return []string{g.id}
		}
	}
	return nil
}

// attach creates the instance's volumes (the image's, as modified by the launch) and interfaces.
func (c *Cloud) attach(i *instance, img *image) {
	gib := map[string]int{}
	for _, d := range img.devices {
		gib[d.name] = d.gib
		i.volumes = append(i.volumes, attached{id: c.newID("vol"), name: d.name, delete: true})
	}
	for _, d := range i.spec.devices {
		if k := slices.IndexFunc(i.volumes, func(a attached) bool { return a.name == d.name }); k >= 0 {
			i.volumes[k].delete = d.delete
		} else {
			i.volumes = append(i.volumes, attached{id: c.newID("vol"), name: d.name, delete: d.delete})
		}
		if d.gib > 0 {
			gib[d.name] = d.gib
		}
	}
	i.RootGiB, i.PodsGiB = gib[img.devices[0].name], gib[img.devices[len(img.devices)-1].name]
	interfaces := i.spec.interfaces
	if len(interfaces) == 0 {
		interfaces = []interfaceSpec{{kind: "interface", groups: i.SecurityGroups}}
	}
	for k, spec := range interfaces {
		i.enis = append(i.enis, attached{id: c.newID("eni"), index: k, spec: spec, delete: !spec.keep})
	}
}

// Instances returns all instances that EC2 knows, in the order of their launches.
func (c *Cloud) Instances() []Instance {
	all := []Instance{}
	c.locked(func(now time.Time) {
		for _, i := range c.order {
			all = append(all, i.public(now))
		}
	})
	return all
}

// Terminate terminates an instance externally, as from the console.
func (c *Cloud) Terminate(id string) error {
	return c.withInstance(id, func(i *instance, now time.Time) { c.terminate(i, now, "Client.UserInitiatedShutdown") })
}

// FailBoots makes the next n launched instances terminate instead of running, as happens if a volume's encryption key
// may not be used.
func (c *Cloud) FailBoots(n int) {
	c.locked(func(time.Time) { c.failBoots = n })
}

func (c *Cloud) withInstance(id string, do func(*instance, time.Time)) error {
	err := fmt.Errorf("no instance %q", id)
	c.locked(func(now time.Time) {
		if i := c.instances[id]; i != nil {
			do(i, now)
			err = nil
		}
	})
	return err
}
