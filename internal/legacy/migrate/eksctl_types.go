package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// This file reads instance types of a group: named types, or a selector
// (https://docs.aws.amazon.com/eks/latest/eksctl/instance-selector.html), which eksctl resolves to names when it
// creates the group, and which becomes requirements of the pool.

// InstanceType describes an EC2 instance type.
type InstanceType struct {
	Name string
	// Arch contains its architectures, with the names in Kubernetes.
	Arch []string
	// CPUs is the number of vCPUs. MemoryMiB is in MiB. GPUs and Neurons are numbers of devices.
	CPUs, MemoryMiB, GPUs, Neurons int64
}

// instanceTypes reads the group's types and architectures.
func (e *eksctlGroup) instanceTypes() {
	e.types = slices.Concat(texts(e.field("instanceType")), texts(e.field("instanceTypes")),
		texts(e.field("instancesDistribution", "instanceTypes")))
	e.types = slices.DeleteFunc(e.types, func(one string) bool { return one == "mixed" || one == "" })
	wanted := e.selector()
	selects := wanted.any()
	switch {
	case len(e.types) > 0 || selects:
	case e.field("launchTemplate") != nil:
		e.types = []string{"m5.large"}
		e.remark(Impossible, "instanceType", "is not set, because the launch template contains it; set to m5.large; set the instance types of the template")
	default:
		e.types = []string{"m5.large"}
		e.remark(Defaulted, "instanceType", "is not set; set to m5.large, the default of eksctl")
	}
	known := e.known()
	for _, name := range e.types {
		t, found := known[name]
		switch {
		case found:
			addOnce(&e.archs, t.Arch[0])
		case graviton(name):
			addOnce(&e.archs, "arm64")
		default:
			addOnce(&e.archs, "amd64")
		}
		if len(known) > 0 && !found {
			e.remark(Advice, "instanceType", "contains %s, an unknown instance type; it is misspelled, newer, or no longer offered", name)
		}
	}
	switch {
	case len(e.types) == 0:
		e.archs = []string{wanted.arch}
		e.require(wanted, known)
	case selects:
		e.overridden(wanted, known)
	}
}

// known returns the types that the caller provides, by name.
func (e *eksctlGroup) known() map[string]InstanceType {
	if e.options.InstanceTypes == nil {
		return nil
	}
	types := map[string]InstanceType{}
	for _, t := range e.options.InstanceTypes() {
		types[t.Name] = t
	}
	return types
}

// graviton reports whether an instance type has an ARM processor: the letter g after the generation, or a1.
func graviton(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	generation := strings.IndexAny(family, "0123456789")
	return family == "a1" || generation >= 0 && strings.Contains(family[generation:], "g")
}

// criteria are those of a selector, -1 if not set.
type criteria struct {
	arch                           string
	cpus, memoryMiB, gpus, neurons int64
}

func (c criteria) any() bool {
	return c.cpus >= 0 || c.memoryMiB >= 0 || c.gpus >= 0 || c.neurons >= 0 || c.arch != "amd64"
}

// fits reports whether a type meets the criteria.
func (c criteria) fits(t InstanceType) bool {
	is := func(want, have int64) bool { return want < 0 || want == have }
	return is(c.cpus, t.CPUs) && is(c.memoryMiB, t.MemoryMiB) && is(c.gpus, t.GPUs) && is(c.neurons,
		t.Neurons) && slices.Contains(t.Arch, c.arch)
}

func (c criteria) String() string {
	parts := []string{c.arch}
	for _, one := range []struct {
		n    int64
		what string
	}{{c.cpus, "vCPUs"}, {c.memoryMiB, "MiB of memory"}, {c.gpus, "GPUs"}, {c.neurons, "Neuron devices"}} {
		if one.n >= 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return strings.Join(parts, ", ")
}

// selector returns the criteria in instanceSelector.
func (e *eksctlGroup) selector() criteria {
	number := func(field string) int64 {
		node := e.field("instanceSelector", field)
		n, err := strconv.ParseInt(text(node), 10, 64)
		if err != nil || n < 0 {
			if !empty(node) {
				e.remark(Impossible, "instanceSelector."+field, "is %s, want an integer; omitted", text(node))
			}
			return -1
		}
		return n
	}
	c := criteria{arch: "amd64", cpus: number("vCPUs"), memoryMiB: -1, gpus: number("gpus"), neurons: number("neuron_devices")}
	if written := text(e.field("instanceSelector", "memory")); written != "" {
		var ok bool
		if c.memoryMiB, ok = mebibytes(written); !ok {
			e.remark(Impossible, "instanceSelector.memory", "is %s, want a quantity such as 4GiB; omitted", written)
		}
	}
	switch arch := text(e.field("instanceSelector", "cpuArchitecture")); arch {
	case "", "x86_64", "amd64":
	case "arm64":
		c.arch = arch
	default:
		e.remark(Impossible, "instanceSelector.cpuArchitecture",
			"is %s, for which no images exist, want x86_64 or arm64; set to amd64", arch)
	}
	for _, field := range []string{"allow", "deny"} {
		if e.field("instanceSelector", field) != nil {
			e.remark(Impossible, "instanceSelector."+field, "is not migrated; a requirement has no patterns; "+
				"add a requirement for %s with the operator In or NotIn", awsv1.LabelInstanceFamily)
		}
	}
	return c
}

var amountOfMemory = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([GgMmTt]?)[iI]?[bB]?$`)

// mebibytes parses an amount of memory, in GiB if it has no unit.
func mebibytes(written string) (int64, bool) {
	found := amountOfMemory.FindStringSubmatch(written)
	if found == nil {
		return -1, false
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return -1, false
	}
	return int64(n * map[string]float64{"": 1024, "g": 1024, "m": 1, "t": 1024 * 1024}[strings.ToLower(found[2])]), true
}

// require adds the requirements of the selector.
func (e *eksctlGroup) require(c criteria, known map[string]InstanceType) {
	for _, one := range []struct {
		label string
		n     int64
	}{{awsv1.LabelInstanceCPU, c.cpus}, {awsv1.LabelInstanceGPUCount, c.gpus}, {awsv1.LabelInstanceAcceleratorCount, c.neurons},
		{awsv1.LabelInstanceMemory, c.memoryMiB}} {
		switch {
		case one.n < 0:
		case one.n == 0:
			e.requirements = append(e.requirements, requirement(one.label, "DoesNotExist"))
		default:
			e.requirements = append(e.requirements, requirement(one.label, "In", strconv.FormatInt(one.n, 10)))
		}
	}
	for _, t := range known {
		if c.fits(t) {
			return
		}
	}
	if len(known) > 0 {
		e.remark(Impossible, "instanceSelector", "no known instance type matches %s; the NodePool cannot launch nodes", c)
	}
}

// overridden adds a note that the types take precedence over the selector: eksctl accepts both only if they agree.
func (e *eksctlGroup) overridden(c criteria, known map[string]InstanceType) {
	var others []string
	for _, name := range e.types {
		if t, found := known[name]; found && !c.fits(t) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		e.remark(Impossible, "instanceSelector", "selects %s, which does not match %s; omitted in favor of the listed instance types, "+
			"because no instance type matches both", c, some(others))
		return
	}
	e.remark(Advice, "instanceSelector", "omitted in favor of the listed instance types")
}
