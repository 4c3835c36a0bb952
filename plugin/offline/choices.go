package offline

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// This file returns what a form for changes offers: workloads, pools and zones.

// mostWorkloads is the maximum number of workloads that Workloads returns.
const mostWorkloads = 1000

// Workloads returns the first workloads with pods, as NAMESPACE/KIND/NAME.
func (o *Overview) Workloads() []string {
	seen := map[string]bool{}
	for _, p := range o.w.pods {
		if name := workloadNameOf(p.object); name != "" && !karpv1.EndedPod(p.object) {
			seen[name] = true
		}
	}
	list := slices.Sorted(maps.Keys(seen))
	return list[:min(len(list), mostWorkloads)]
}

// Pools returns the manifests of the pools as YAML by name, without what the API server adds.
func (o *Overview) Pools() map[string]string {
	list := map[string]string{}
	for _, p := range o.w.pools {
		bare := &karpv1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
			ObjectMeta: metav1.ObjectMeta{Name: p.object.Name, Annotations: maps.Clone(p.object.Annotations)}, Spec: p.object.Spec}
		delete(bare.Annotations, corev1.LastAppliedConfigAnnotation)
		list[p.object.Name] = manifestOf(bare)
	}
	return list
}

// manifestOf returns a pool as YAML, without the status, which is not part of a manifest.
func manifestOf(pool *karpv1.NodePool) string {
	var fields map[string]any
	text, err := yaml.Marshal(pool)
	if err == nil {
		err = yaml.Unmarshal(text, &fields)
	}
	if err == nil {
		delete(fields, "status")
		text, err = yaml.Marshal(fields)
	}
	if err != nil {
		return fmt.Sprintf("# %v", err)
	}
	return string(text)
}

// Zones returns the zones of nodes and offerings.
func (o *Overview) Zones() []string {
	var list []string
	for _, n := range o.snap.Nodes {
		list = append(list, n.Labels[model.LabelZone])
	}
	for i := range o.w.sale.Catalogs {
		for _, t := range o.w.sale.Catalogs[i].Types {
			for _, offering := range t.Offerings {
				list = append(list, offering.Zone)
			}
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(zone string) bool { return zone == "" })
}
