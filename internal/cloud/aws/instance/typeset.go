package instance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// TypeSet holds the types that are compatible with one class, without offerings. It is immutable, and its results
// are shared and must not be modified.
type TypeSet struct {
	class     string
	zones     []zone
	placement PlacementGroup
	entries   []typeEntry
	excluded  map[string]string
	images    map[string]string
	// resolved is by type, and nil if the class has no expressions.
	resolved map[string]Resolved
	failure  string
}

// typeEntry is one type of the set.
type typeEntry struct {
	instanceType cloud.InstanceType
	zones        []zone
	// usage lists the capacity types in the order of the offerings.
	usage []string
	// reserved are the capacity reservations of the type.
	reserved []reservedOffering
	resolved Resolved
}

// Seen returns the minimum memory in bytes of the nodes of a type with an image. Memory.Least is an implementation.
type Seen func(typeName, imageID string) (bytes int64, known bool)

// NewTypeSet determines which of the types are compatible with the class, and their attributes. If seen is nil,
// memory is estimated. It fails if a setting is invalid; the error names the setting.
func NewTypeSet(types []catalog.Type, class *Class, settings *Settings, seen Seen) (*TypeSet, error) {
	if err := settings.check(); err != nil {
		return nil, fmt.Errorf("reading the settings for instance types: %w", err)
	}
	reserved, err := class.Kubelet.reservations()
	if err != nil {
		return nil, fmt.Errorf("reading EC2NodeClass %q: spec.%w", class.Name, err)
	}
	b := builder{class: class, settings: settings, family: familyOf(class.Family), reserved: reserved, zones: class.zones(), seen: seen,
		formulas: newFormulas(class, settings)}
	a := &TypeSet{class: class.Name, zones: b.zones, placement: class.Placement, excluded: map[string]string{}, images: map[string]string{}}
	if !b.formulas.none() {
		a.resolved = map[string]Resolved{}
	}
	for i := range types {
		t := &types[i]
		made, image, why := b.typeEntry(t)
		if why != "" {
			a.excluded[t.Name] = why
			continue
		}
		a.entries = append(a.entries, made)
		a.images[t.Name] = image
		if a.resolved != nil {
			a.resolved[t.Name] = made.resolved
		}
	}
	a.failure = b.formulas.failure
	slices.SortFunc(a.entries, func(x, y typeEntry) int { return strings.Compare(x.instanceType.Name, y.instanceType.Name) })
	return a, nil
}

// Excluded returns the reason for each excluded type, by name.
func (a *TypeSet) Excluded() map[string]string { return maps.Clone(a.excluded) }

// Emptiness returns what excludes the types of a class that has none, the most frequent reasons first. It is empty if the
// class has a type, or if there are none at all.
func (a *TypeSet) Emptiness() string {
	if len(a.entries) > 0 || len(a.excluded) == 0 {
		return ""
	}
	number := map[string]int{}
	for _, why := range a.excluded {
		number[why]++
	}
	reasons := slices.SortedFunc(maps.Keys(number), func(x, y string) int {
		return cmp.Or(number[y]-number[x], strings.Compare(x, y))
	})
	var texts []string
	others := len(a.excluded)
	for _, why := range reasons[:min(len(reasons), mostReasons)] {
		texts = append(texts, fmt.Sprintf("%d of %d: it %s", number[why], len(a.excluded), why))
		others -= number[why]
	}
	if others > 0 {
		texts = append(texts, fmt.Sprintf("%d for other reasons", others))
	}
	return strings.Join(texts, "; ")
}

// mostReasons is the maximum number of reasons in the text about a class without types.
const mostReasons = 3

// Image returns the image for the type. It is empty if the class has no image for it or excludes the type.
func (a *TypeSet) Image(typeName string) string { return a.images[typeName] }

// Resolved returns the results of the class's expressions for the type.
func (a *TypeSet) Resolved(typeName string) Resolved { return a.resolved[typeName] }

// Failure returns why an expression of the class has no valid result for one of the types: the field, the type and the
// reason. It is empty if all have results.
func (a *TypeSet) Failure() string { return a.failure }

// Placement returns the placement group that the types are for.
func (a *TypeSet) Placement() PlacementGroup { return a.placement }

// builder holds what all types of a class share.
type builder struct {
	class    *Class
	settings *Settings
	family   family
	reserved reservations
	zones    []zone
	seen     Seen
	formulas formulas
}

// typeEntry returns one type, or why the class excludes it.
func (b *builder) typeEntry(t *catalog.Type) (made typeEntry, image, why string) {
	for _, check := range []func(*catalog.Type) string{b.refusesSystem, b.refusesFeatures, b.refusesInterfaces, b.refusesPlacement} {
		if why := check(t); why != "" {
			return made, "", why
		}
	}
	made.zones, made.usage, made.reserved = b.zonesOf(t), usageOf(t), b.reservedOf(t)
	switch {
	case len(made.reserved) > 0:
	case len(made.usage) == 0:
		return made, "", "has neither on-demand nor spot offerings"
	case len(made.zones) == 0:
		return made, "", "has no offering in any zone of the class's subnets" + b.zoneNames()
	}
	requirements := b.class.requirements(t, &b.family, b.settings.Region)
	image, found := b.class.imageFor(requirements)
	if !found {
		return made, "", "has an architecture or devices that no image of the class supports (spec.amiSelectorTerms)"
	}
	made.instanceType, made.resolved = b.instanceType(t, requirements, image)
	if len(made.reserved) > 0 {
		made.unreserved()
	}
	allocatable := made.instanceType.Allocatable()
	for _, name := range []string{cpu, memory, pods} {
		if allocatable[name] <= 0 {
			return made, "", "has no " + name + " left after reservations" + b.reservedBy(name)
		}
	}
	return made, image, ""
}

func (b *builder) instanceType(t *catalog.Type, requirements []cloud.Requirement, image string) (cloud.InstanceType, Resolved) {
	class, reserved, resolved := b.resolve(t)
	capacity := class.capacity(t, &b.family, b.settings)
	if b.seen != nil {
		if bytes, known := b.seen(t.Name, image); known {
			capacity[memory] = bytes
		}
	}
	return cloud.InstanceType{
		Name:         t.Name,
		Requirements: requirements,
		Capacity:     capacity,
		Overhead:     reserved.overhead(t, &b.family, capacity),
		AttachLimits: map[string]int{EBSDriver: b.class.attachLimit(t, &b.family)},
		Special:      special(t),
	}, resolved
}

// zonesOf returns the zones that offer the type and in which the class has subnets.
func (b *builder) zonesOf(t *catalog.Type) []zone {
	selling := t.ZonesIn(b.settings.Region)
	var zones []zone
	for _, z := range b.zones {
		if slices.Contains(selling, z.name) {
			zones = append(zones, z)
		}
	}
	return zones
}

// usageOf returns the capacity types of the type, sorted.
func usageOf(t *catalog.Type) []string {
	var usage []string
	for _, way := range []struct{ ec2, ours string }{
		{catalog.UsageOnDemand, karpv1.CapacityTypeOnDemand}, {catalog.UsageSpot, karpv1.CapacityTypeSpot},
	} {
		if t.SupportsUsage(way.ec2) {
			usage = append(usage, way.ours)
		}
	}
	return usage
}

// imageFor returns the first image whose requirements nodes with these labels meet.
func (c *Class) imageFor(labels []cloud.Requirement) (id string, found bool) {
	if len(c.Images) == 0 {
		return "", true
	}
	for _, image := range c.Images {
		need := cloud.Need{Labels: map[string]cloud.Values{}}
		for _, r := range image.Requirements {
			values, twice := need.Labels[r.Key]
			if !twice {
				values = cloud.AnyValue()
			}
			need.Labels[r.Key] = values.Narrow(r.Operator, r.Values)
		}
		if !slices.ContainsFunc(labels, func(r cloud.Requirement) bool { return !need.Allows(r) }) {
			return image.ID, true
		}
	}
	return "", false
}

// zoneNames returns the zones of the class's subnets for a sentence.
func (b *builder) zoneNames() string {
	var names []string
	for _, z := range b.zones {
		names = append(names, z.name)
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// reservedBy returns the settings that reduce what a node has of the resource for pods, for a sentence.
func (b *builder) reservedBy(resource string) string {
	var set []string
	add := func(field string, value any) { set = append(set, fmt.Sprintf("spec.kubelet.%s is %v", field, value)) }
	k := &b.class.Kubelet
	switch {
	case resource != pods:
		for _, of := range []struct {
			field                string
			amounts, expressions map[string]string
		}{{"kubeReserved", k.KubeReserved, k.KubeExpressions}, {"systemReserved", k.SystemReserved, k.SystemExpressions}} {
			if text, is := of.amounts[resource]; is {
				add(of.field+"."+resource, text)
			}
			if text, is := of.expressions[resource]; is {
				add(of.field+"."+resource, text)
			}
		}
		if text, is := k.EvictionHard[signalMemory]; is && resource == memory {
			add(fmt.Sprintf("evictionHard[%q]", signalMemory), text)
		}
	case k.MaxPodsExpression != "" && b.settings.KubeletExpressions:
		add("maxPods", k.MaxPodsExpression)
	case k.MaxPods != nil:
		add("maxPods", *k.MaxPods)
	case b.settings.ReservedENIs > 0:
		set = append(set, fmt.Sprintf("the controller's reserved-enis is %d", b.settings.ReservedENIs))
	}
	if len(set) == 0 {
		return ""
	}
	return ": " + strings.Join(set, ", ")
}

func (b *builder) refusesSystem(t *catalog.Type) string {
	switch arch := architecture(t); {
	case arch == "":
		return "has an architecture that Kubernetes nodes do not run on: " + strings.Join(t.Architectures, ", ")
	case b.family.windows():
		return refusesWindows(t, arch)
	case b.family.name == awsv1.FamilyAL2023 && t.Family() == "a1":
		return "has a processor that AL2023 does not support"
	}
	return ""
}

func (b *builder) refusesFeatures(t *catalog.Type) string {
	switch {
	case b.class.NestedVirtualization && !t.NestedVirtualization:
		return "does not support nested virtualization, which spec.cpuOptions requires"
	case b.class.ConnectionTracking && t.Hypervisor != catalog.HypervisorNitro:
		return "is not a virtual machine on Nitro, which spec.connectionTracking requires"
	}
	return ""
}

// refusesInterfaces checks the interfaces of the class against the network cards of the type.
func (b *builder) refusesInterfaces(t *catalog.Type) string {
	if len(b.class.Interfaces) == 0 {
		return ""
	}
	if !t.SupportsENA() {
		return "has no enhanced network adapter, which spec.networkInterfaces requires"
	}
	var efas int64
	for _, i := range b.class.Interfaces {
		if i.EFAOnly {
			efas++
		}
		switch {
		case i.Card >= max(1, t.Cards):
			return fmt.Sprintf("has %d network cards, too few for the networkCardIndex %d", max(1, t.Cards), i.Card)
		case i.Device >= t.ENIsOn(i.Card):
			return fmt.Sprintf("has %d interfaces on network card %d, too few for the deviceIndex %d", t.ENIsOn(i.Card), i.Card, i.Device)
		}
	}
	if efas > t.EFAs {
		return fmt.Sprintf("has %d elastic fabric adapters, and spec.networkInterfaces requires %d", t.EFAs, efas)
	}
	return ""
}
