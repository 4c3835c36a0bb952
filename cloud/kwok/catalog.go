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
	"github.com/karpenter-go/karpenter/cloud"
)

// Labels for a type's size, with upstream's names. The values of size and family are derived from the type's name.
const (
	LabelSize   = kwokv1alpha1.Group + "/instance-size"   // "large" for "m5.large"; otherwise the number of vCPUs
	LabelFamily = kwokv1alpha1.Group + "/instance-family" // "m5" for "m5.large", "c" for "c-2x-amd64-linux"
	LabelCPU    = kwokv1alpha1.Group + "/instance-cpu"    // vCPUs
	LabelMemory = kwokv1alpha1.Group + "/instance-memory" // MiB
)

// embedded is the catalog of the 144 types of upstream's kwok provider, in upstream's format
// (https://github.com/kubernetes-sigs/karpenter/tree/main/kwok). The test of this package computes the file from the
// generation rules and rewrites it with -update.
//
//go:embed instance_types.json
var embedded []byte

// EmbeddedTypes returns the catalog that is used without --instance-types-file-path: 144 types in four zones. Callers
// get their own slices. The contents of the types are shared and must not be modified.
func EmbeddedTypes() (types []cloud.InstanceType, providerLabels []string) {
	catalog := readEmbedded()
	return slices.Clone(catalog.types), slices.Clone(catalog.labels)
}

type embeddedCatalog struct {
	types  []cloud.InstanceType
	labels []string
}

var readEmbedded = sync.OnceValue(func() embeddedCatalog {
	types, labels, err := ReadInstanceTypes(bytes.NewReader(embedded), "the embedded instance types")
	if err != nil {
		panic(err) // the file is embedded in the binary and tested
	}
	return embeddedCatalog{types: types, labels: labels}
})

// check returns an error for mistakes that both formats permit.
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

// fixedLabels returns the label keys that other fields of a type determine.
func fixedLabels() []string {
	return []string{corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelHostname,
		corev1.LabelTopologyZone, karpv1.LabelCapacityType, karpv1.LabelNodePool}
}

func (e *entry) checkOfferings() error {
	if len(e.offerings) == 0 {
		return errors.New("offerings: are missing, want at least one")
	}
	type key struct{ zone, capacityType, reservation string }
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
		switch {
		case o.ReservationID == "" && (o.ReservationCount != 0 || !o.ReservationEnd.IsZero()):
			return fmt.Errorf("offerings[%d]: has a count or an end of a reservation and no reservationID", i)
		case o.ReservationID != "" && (o.CapacityType != karpv1.CapacityTypeReserved || o.ReservationCount < 0):
			return fmt.Errorf("offerings[%d]: has a reservation, want capacity type reserved and a reservationCount of zero or more", i)
		case len(validation.IsValidLabelValue(o.ReservationID)) > 0:
			return fmt.Errorf("offerings[%d]: reservationID is %q, want a label value", i, o.ReservationID)
		}
		k := key{o.Zone, o.CapacityType, o.ReservationID}
		if earlier, twice := first[k]; twice {
			return fmt.Errorf("offerings[%d]: has zone %s and capacity type %s like offerings[%d], want each once (of a reservation)",
				i, k.zone, k.capacityType, earlier)
		}
		first[k] = i
	}
	return nil
}

// catalogOf converts checked entries to types. If one type has a label, all types have a requirement for its key.
func catalogOf(entries []entry) (types []cloud.InstanceType, providerLabels []string) {
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
	cloud.SortCatalog(types)
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

// liftRequirement adds a requirement for the key to every offering that has none. If all offerings then have the same
// one, it removes the requirement from the offerings and returns it as the type's requirement.
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

// hasExtendedResource reports whether the type has a device such as nvidia.com/gpu. Such a type is Special.
func hasExtendedResource(capacity map[string]int64) bool {
	for name, amount := range capacity {
		if amount > 0 && strings.Contains(name, "/") {
			return true
		}
	}
	return false
}

// sizeLabels returns the labels that upstream derives from a type's name and capacity
// (https://github.com/kubernetes-sigs/karpenter/tree/main/kwok).
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

// withSizeLabels copies the types and adds the labels that the provider declares to types from a file with its own
// labels.
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
