package offline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// typesOn reads the available types if neither a capture nor a cluster contains them: from a file of instance types,
// that of a folder, or the embedded types of the kwok provider. Labels that only a folder's meta.json names are
// absent on all types.
func (o *Manifests) typesOn(path string) error {
	if o.sale != nil && path == "" {
		return nil
	}
	path = cmp.Or(path, o.typesFile)
	types, labels := kwok.EmbeddedTypes()
	if path != "" {
		var err error
		if types, labels, err = readTypes(path); err != nil {
			return err
		}
	}
	for _, label := range o.providerLabels {
		if slices.Contains(labels, label) {
			continue
		}
		labels = append(labels, label)
		for i := range types {
			types[i].Requirements = append(slices.Clip(types[i].Requirements), cloud.Requirement{Key: label, Operator: "DoesNotExist"})
		}
	}
	o.ofFile = true
	o.sale = &capture.PriceList{Declared: cloud.Declared{WellKnown: labels, ReservationKey: kwok.ReservationKey(types)},
		Catalogs: []capture.PriceListEntry{{Types: types}}}
	return nil
}

func readTypes(path string) ([]cloud.InstanceType, []string, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, nil, inputErrorf("reading instance types: %w", err)
	}
	types, labels, err := kwok.ReadInstanceTypes(bytes.NewReader(data), path)
	if err != nil {
		return nil, nil, inputErrorf("%w", err)
	}
	return types, labels, nil
}

// prepare validates the pools once, and computes what the rounds need.
func (o *Manifests) prepare() {
	o.setClasses()
	rules := convert.NewVocabulary(o.sale.Declared, o.classes...).Rules
	o.pools = slices.DeleteFunc(o.pools, func(p sourced[*karpv1.NodePool]) bool {
		errs := karpv1.Validate(p.object, rules)
		if len(errs) == 0 || p.live {
			return false
		}
		o.problem(fmt.Errorf("%s: %w", p.origin, errs[0]))
		o.refusePool(p.object.Name, errs[0])
		return true
	})
	for _, c := range o.claims {
		if assumed(c.object) {
			c.object.Spec.NodeClassRef = o.classOfAssumed(c.object)
		}
	}
	if o.ofFile {
		o.useReservations()
	}
}

// useReservations reduces the reservations of a file of instance types by the machines that have their label, and ends
// those whose time is over, as the provider of such files does.
func (o *Manifests) useReservations() {
	used := map[string]int{}
	for _, m := range o.machinesOf() {
		if claim := m.Claim(); claim != nil {
			used[claim.Labels[kwok.LabelReservation]]++
		} else {
			used[m.Node().Labels[kwok.LabelReservation]]++
		}
	}
	for i := range o.sale.Catalogs {
		c := &o.sale.Catalogs[i]
		c.Types = kwok.WithUse(c.Types, used, o.now)
	}
}

// setClasses sets the kinds of node class that count: those of the provider, or all that pools reference. Those that
// claims of files reference count too.
func (o *Manifests) setClasses() {
	o.classes = slices.Clone(o.sale.NodeClasses)
	add := func(ref karpv1.NodeClassReference) {
		if kind := (schema.GroupKind{Group: ref.Group, Kind: ref.Kind}); !slices.Contains(o.classes, kind) {
			o.classes = append(o.classes, kind)
		}
	}
	if len(o.classes) == 0 {
		for _, pool := range o.pools {
			add(classOf(pool.object))
		}
	}
	for _, c := range o.claims {
		if !c.live && !assumed(c.object) {
			add(c.object.Spec.NodeClassRef)
		}
	}
	if len(o.classes) == 0 {
		add(karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind})
	}
}

// Empty reports whether there is nothing to decide about.
func (o *objects) Empty() bool {
	return len(o.pools)+len(o.pods)+len(o.nodes)+len(o.claims)+len(o.daemons)+len(o.workloads)+len(o.buffers.objects) == 0
}

func ownedByNode(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" || o.Kind == "DaemonSet" })
}
