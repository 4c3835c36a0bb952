package expression

import "github.com/google/cel-go/cel"

// Variables are the facts about an instance type that an expression can use.
type Variables struct {
	// InstanceType is its name, such as m5.large.
	InstanceType string
	VCPUs        int64
	// MemoryMiB is the memory in MiB that EC2 reports, of which a node sees less.
	MemoryMiB int64
	// DefaultENIs is the number of network interfaces on the default network card whose addresses pods can use.
	DefaultENIs int64
	// IPsPerENI is the number of IPv4 addresses of one interface, including its own.
	IPsPerENI int64
	// MaxPods is the number of pods of a node. For the expression of that number, it is the number without it.
	MaxPods int64
}

// nameVariable is the variable with the name of the type.
const nameVariable = "instance_type"

// variables are the names that expressions use.
var variables = []string{nameVariable, "vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods"}

// declarations are the variables by the names that expressions use.
func declarations() []cel.EnvOption {
	options := []cel.EnvOption{cel.Variable(nameVariable, cel.StringType)}
	for _, name := range variables[1:] {
		options = append(options, cel.Variable(name, cel.IntType))
	}
	return options
}

// ResolveName implements cel.Activation.
func (v *Variables) ResolveName(name string) (any, bool) {
	switch name {
	case nameVariable:
		return v.InstanceType, true
	case "vcpus":
		return v.VCPUs, true
	case "memory_mib":
		return v.MemoryMiB, true
	case "default_enis":
		return v.DefaultENIs, true
	case "ips_per_eni":
		return v.IPsPerENI, true
	case "max_pods":
		return v.MaxPods, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v *Variables) Parent() cel.Activation { return nil }
