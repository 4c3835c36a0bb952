package kwok

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Labels of a type's size. Upstream's names; the values of size and family are derived from the type's name.
const (
	LabelSize   = kwokv1alpha1.Group + "/instance-size"   // "large" of "m5.large"; the number of vCPUs without such a suffix
	LabelFamily = kwokv1alpha1.Group + "/instance-family" // "m5" of "m5.large", "c" of "c-2x-amd64-linux"
	LabelCPU    = kwokv1alpha1.Group + "/instance-cpu"    // vCPUs
	LabelMemory = kwokv1alpha1.Group + "/instance-memory" // MiB
)

// embedded is the catalogue of 144 types of the core specification, section 10, in upstream's format. The test of this
// package computes it from the rules given there and rewrites it with -update.
//
//go:embed instance_types.json
var embedded []byte

// EmbeddedTypes is the catalogue used without --instance-types-file-path: 144 types in four zones. Callers get slices of
// their own, sharing what is inside the types, which nobody may change.
func EmbeddedTypes() (types []cloud.InstanceType, providerLabels []string) {
	catalogue := readEmbedded()
	return slices.Clone(catalogue.types), slices.Clone(catalogue.labels)
}

type embeddedCatalogue struct {
	types  []cloud.InstanceType
	labels []string
}

var readEmbedded = sync.OnceValue(func() embeddedCatalogue {
	types, labels, err := ReadInstanceTypes(bytes.NewReader(embedded), "the embedded instance types")
	if err != nil {
		panic(err) // the file is part of the program and tested
	}
	return embeddedCatalogue{types: types, labels: labels}
})

// check finds what either format could get wrong.
func (e *entry) check() error {
	switch {
	case e.name == "":
		return errors.New("name: is missing, want the value of the label " + corev1.LabelInstanceTypeStable)
	case len(validation.IsValidLabelValue(e.name)) > 0:
		return fmt.Errorf("name: %q is no label value: %s", e.name, validation.IsValidLabelValue(e.name)[0])
	case e.arch != karpv1.ArchitectureAMD64 && e.arch != karpv1.ArchitectureARM64:
		return fmt.Errorf("architecture: is %q, want amd64 or arm64", e.arch)
	case len(e.os) == 0:
		return errors.New("operating systems: are missing, want at least one, such as linux")
	case slices.ContainsFunc(e.os, func(os string) bool { return os == "" || len(validation.IsValidLabelValue(os)) > 0 }):
		return fmt.Errorf("operating systems: are %q, want words such as linux or windows", e.os)
	}
	for _, name := range []string{"cpu", "memory", "pods"} {
		if e.capacity[name] <= e.overhead[name] {
			return fmt.Errorf("capacity: %s is missing or not greater than the overhead, want more", name)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(e.attachLimits)) {
		if driver == "" || e.attachLimits[driver] < 0 {
			return fmt.Errorf("attachLimits[%q]: is %d, want a CSI driver and zero or more", driver, e.attachLimits[driver])
		}
	}
	if err := e.checkLabels(); err != nil {
		return err
	}
	return e.checkOfferings()
}

func (e *entry) checkLabels() error {
	for _, key := range slices.Sorted(maps.Keys(e.labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("labels: key %q: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(e.labels[key]); len(problems) > 0 {
			return fmt.Errorf("labels[%q]: value %q: %s", key, e.labels[key], problems[0])
		}
		if slices.Contains(fixedLabels(), key) {
			return fmt.Errorf("labels[%q]: cannot be set here, want it left to the name, arch, os and offerings of the type", key)
		}
	}
	return nil
}

// fixedLabels are the labels that other fields of a type decide.
func fixedLabels() []string {
	return []string{corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelHostname,
		corev1.LabelTopologyZone, karpv1.LabelCapacityType, karpv1.LabelNodePool}
}

func (e *entry) checkOfferings() error {
	if len(e.offerings) == 0 {
		return errors.New("offerings: are missing, want at least one")
	}
	type key struct{ zone, capacityType string }
	first := map[key]int{}
	for i := range e.offerings {
		o := &e.offerings[i]
		switch o.CapacityType {
		case karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot, karpv1.CapacityTypeReserved:
		default:
			return fmt.Errorf("offerings[%d]: capacity type is %q, want on-demand, spot or reserved", i, o.CapacityType)
		}
		if o.Zone == "" || len(validation.IsValidLabelValue(o.Zone)) > 0 {
			return fmt.Errorf("offerings[%d]: zone is %q, want a label value", i, o.Zone)
		}
		k := key{o.Zone, o.CapacityType}
		if earlier, twice := first[k]; twice {
			return fmt.Errorf("offerings[%d]: has zone %s and capacity type %s like offerings[%d], want each pair once", i, k.zone, k.capacityType, earlier)
		}
		first[k] = i
	}
	return nil
}

// catalogueOf turns checked entries into types that all say something about every label which one of them carries.
func catalogueOf(entries []entry) (types []cloud.InstanceType, providerLabels []string) {
	known := map[string]bool{}
	for i := range entries {
		for key := range entries[i].labels {
			known[key] = true
		}
		for _, o := range entries[i].offerings {
			for _, r := range o.Requirements {
				known[r.Key] = true
			}
		}
	}
	providerLabels = slices.Sorted(maps.Keys(known))
	for i := range entries {
		types = append(types, entries[i].instanceType(providerLabels))
	}
	cloud.SortCatalogue(types)
	return types, providerLabels
}

func (e *entry) instanceType(providerLabels []string) cloud.InstanceType {
	t := cloud.InstanceType{
		Name:     e.name,
		Capacity: e.capacity, Overhead: e.overhead, Offerings: e.offerings,
		Special: hasExtendedResource(e.capacity), AttachLimits: e.attachLimits,
		Requirements: []cloud.Requirement{
			hasValue(corev1.LabelInstanceTypeStable, e.name),
			hasValue(corev1.LabelArchStable, e.arch),
			{Key: corev1.LabelOSStable, Operator: "In", Values: slices.Sorted(slices.Values(e.os))},
		},
	}
	for _, key := range providerLabels {
		if value, ok := e.labels[key]; ok {
			t.Requirements = append(t.Requirements, hasValue(key, value))
		} else {
			t.Requirements = append(t.Requirements, liftRequirement(t.Offerings, key)...)
		}
	}
	for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelWindowsBuild} {
		if !slices.Contains(providerLabels, key) {
			t.Requirements = append(t.Requirements, cloud.Requirement{Key: key, Operator: "DoesNotExist"})
		}
	}
	return t
}

func hasValue(key, value string) cloud.Requirement {
	return cloud.Requirement{Key: key, Operator: "In", Values: []string{value}}
}

// liftRequirement makes every offering say something about the key, and returns it as the type's requirement, taken
// off the offerings, if they all say the same.
func liftRequirement(offerings []cloud.Offering, key string) []cloud.Requirement {
	about := func(r cloud.Requirement) bool { return r.Key == key }
	var first cloud.Requirement
	same := true
	for i := range offerings {
		o := &offerings[i]
		at := slices.IndexFunc(o.Requirements, about)
		if at < 0 {
			at = len(o.Requirements)
			o.Requirements = append(o.Requirements, cloud.Requirement{Key: key, Operator: "DoesNotExist"})
		}
		r := o.Requirements[at]
		if i == 0 {
			first = r
		}
		same = same && r.Operator == first.Operator && slices.Equal(r.Values, first.Values)
	}
	if !same {
		return nil
	}
	for i := range offerings {
		offerings[i].Requirements = slices.DeleteFunc(offerings[i].Requirements, about)
		if len(offerings[i].Requirements) == 0 {
			offerings[i].Requirements = nil
		}
	}
	return []cloud.Requirement{first}
}

// hasExtendedResource says whether the type has a device such as nvidia.com/gpu, which makes it Special.
func hasExtendedResource(capacity map[string]int64) bool {
	for name, amount := range capacity {
		if amount > 0 && strings.Contains(name, "/") {
			return true
		}
	}
	return false
}

// sizeLabels are the labels that upstream derives from a type's name and capacity: core specification, section 10.
func sizeLabels(name string, capacity map[string]int64) map[string]string {
	cpu := strconv.FormatInt(capacity["cpu"]/1000, 10)
	family, size := name[:1], cpu
	if at := strings.IndexAny(name, ".-"); at > 0 {
		family = name[:at]
	}
	if _, suffix, found := strings.Cut(name, "."); found && suffix != "" {
		size = suffix
	}
	return map[string]string{
		LabelFamily: family, LabelSize: size,
		LabelCPU: cpu, LabelMemory: strconv.FormatInt(capacity["memory"]>>20, 10),
	}
}

// withSizeLabels copies types, and completes those of a file that has labels of its own by the labels that the provider
// declares.
func withSizeLabels(types []cloud.InstanceType) []cloud.InstanceType {
	completed := slices.Clone(types)
	for i := range completed {
		t := &completed[i]
		labels := sizeLabels(t.Name, t.Capacity)
		t.Requirements, t.Offerings = slices.Clone(t.Requirements), slices.Clone(t.Offerings)
		for _, key := range declaredLabels() {
			if !slices.ContainsFunc(t.Requirements, func(r cloud.Requirement) bool { return r.Key == key }) {
				t.Requirements = append(t.Requirements, hasValue(key, labels[key]))
			}
		}
	}
	return completed
}

func declaredLabels() []string {
	return []string{LabelCPU, LabelFamily, LabelMemory, LabelSize}
}
