package fakeapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karpenter-go/karpenter/api/crds"
)

// kind is what the server knows of a kind of objects.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
	// custom kinds have no protobuf. status kinds have the subresource. counted kinds have a generation, and kept ones
	// accept a status in a new object.
	custom, status, counted, kept bool
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

// builtin are the kinds of Kubernetes: a "/" begins a kind of the cluster, "*" one with a status, "+" one with a generation.
const builtin = `
v1: +*pods /*nodes /*namespaces *services *replicationcontrollers configmaps secrets limitranges *persistentvolumeclaims
	/*persistentvolumes events serviceaccounts *resourcequotas endpoints
apps/v1: +*daemonsets +*deployments +*replicasets +*statefulsets
batch/v1: +*jobs +*cronjobs
policy/v1: +*poddisruptionbudgets
storage.k8s.io/v1: /storageclasses /csinodes /*volumeattachments /csidrivers csistoragecapacities
scheduling.k8s.io/v1: /priorityclasses
node.k8s.io/v1: /runtimeclasses
coordination.k8s.io/v1: leases
events.k8s.io/v1: events
apiextensions.k8s.io/v1: +/*customresourcedefinitions`

// kinds returns the kinds that the server serves, by group and version, those of the scheme and of this module's definitions.
func kinds(scheme *runtime.Scheme) ([]*kind, error) {
	byResource := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for gvk := range scheme.AllKnownTypes() {
		plural, _ := unsafePlural(gvk)
		byResource[plural] = gvk
	}
	var all []*kind
	gv := schema.GroupVersion{}
	for _, word := range strings.Fields(builtin) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			gv, _ = schema.ParseGroupVersion(name)
			continue
		}
		k := &kind{resource: strings.TrimLeft(word, "/*+"), namespaced: !strings.Contains(word, "/"), status: strings.Contains(word, "*"),
			counted: strings.Contains(word, "+")}
		k.GroupVersionKind = byResource[gv.WithResource(k.resource)]
		k.kept = k.Kind == "Node" || k.Kind == "PersistentVolume"
		if k.Kind == "" {
			return nil, fmt.Errorf("the scheme has no kind for %s of %s", k.resource, gv)
		}
		all = append(all, k)
	}
	return addCustom(all)
}

// addCustom adds the stored versions of this module's definitions.
func addCustom(all []*kind) ([]*kind, error) {
	definitions, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			if !version.Storage {
				continue
			}
			all = append(all, &kind{
				GroupVersionKind: schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind},
				resource:         definition.Spec.Names.Plural, namespaced: definition.Spec.Scope == "Namespaced", custom: true,
				status: version.Subresources != nil && version.Subresources.Status != nil, counted: true,
			})
		}
	}
	slices.SortStableFunc(all, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return all, nil
}

// unsafePlural guesses the resource of a kind from its name.
func unsafePlural(gvk schema.GroupVersionKind) (plural, singular schema.GroupVersionResource) {
	name := strings.ToLower(gvk.Kind)
	singular = gvk.GroupVersion().WithResource(name)
	switch {
	case name == "endpoints":
		return singular, singular
	case strings.HasSuffix(name, "s"):
		name += "es"
	case strings.HasSuffix(name, "y"):
		name = name[:len(name)-1] + "ies"
	default:
		name += "s"
	}
	return gvk.GroupVersion().WithResource(name), singular
}

// discovered describes the kinds of a group and version.
func discovered(all []*kind, gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	add := func(name string, k *kind, verbs ...string) {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, SingularName: strings.ToLower(k.Kind),
			Namespaced: k.namespaced, Kind: k.Kind, Verbs: verbs})
	}
	for _, k := range all {
		if k.GroupVersion() != gv {
			continue
		}
		add(k.resource, k, "create", "delete", "get", "list", "patch", "update", "watch")
		if k.status {
			add(k.resource+"/status", k, "get", "patch", "update")
		}
	}
	return list
}

// groups describes the groups of the kinds.
func groups(all []*kind) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range all {
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group })
		switch {
		case k.Group == "":
		case i < 0:
			list.Groups = append(list.Groups,
				metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		case !slices.Contains(list.Groups[i].Versions, version):
			list.Groups[i].Versions = append(list.Groups[i].Versions, version)
		}
	}
	return list
}
