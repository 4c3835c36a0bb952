package state

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Representation: the conversion of a pod depends on other objects (claims, volumes, storage classes, labels of
// namespaces, Services and controllers). The conversion of a pod records every object that it looks up, whether or
// not it exists. When such an object changes, only the pods that looked it up are converted again. The cost of an
// event is the number of pods that depend on the object; most pods depend on none.

// dependencies holds the context in which pods are converted.
type dependencies struct {
	*base
	around convert.Around
	// namespaces holds the labels by name, shared with around.
	namespaces map[string]map[string]string
	// services by namespace and name; selectors are those of controllers. Both are empty without default spread.
	services  map[string]map[string]*corev1.Service
	selectors map[Ref]*metav1.LabelSelector
	// hosts holds the hostname labels of the nodes, by name of the node; hosted counts the nodes with a hostname.
	hosts  map[string]string
	hosted map[string]int
	// drivers counts the nodes of each CSI driver; driversOf holds, by node, whether its drivers have topology keys.
	drivers   map[string]driverNodes
	driversOf map[string]map[string]bool
	// lookedUp lists the objects that the current conversion has looked up.
	lookedUp []Ref
	// dependents holds the pods that looked up an object; dependsOn holds the objects that each pod looked up.
	dependents map[Ref]map[types.NamespacedName]bool
	dependsOn  map[types.NamespacedName][]Ref
}

// Refs that represent more than one object.
var (
	allNamespaces = Ref{Kind: Namespaces}
	defaultClass  = Ref{Kind: Classes}
)

func allServices(namespace string) Ref {
	return Ref{Services, types.NamespacedName{Namespace: namespace}}
}

func newDependencies(b *base) *dependencies {
	d := &dependencies{
		base: b, namespaces: map[string]map[string]string{}, services: map[string]map[string]*corev1.Service{},
		selectors: map[Ref]*metav1.LabelSelector{}, hosts: map[string]string{}, hosted: map[string]int{},
		drivers: map[string]driverNodes{}, driversOf: map[string]map[string]bool{},
		dependents: map[Ref]map[types.NamespacedName]bool{}, dependsOn: map[types.NamespacedName][]Ref{},
	}
	d.around = convert.Around{
		Namespaces: d.namespaces, Volumes: d, Users: d.users, Host: d.Host, Everywhere: d.Everywhere,
		DefaultSpread: convert.DefaultSpread(b.config.DefaultSpread, d), Admission: d,
	}
	return d
}

// record adds an object to those that the current conversion has looked up.
func (d *dependencies) record(k Kind, namespace, name string) Ref {
	at := Ref{k, types.NamespacedName{Namespace: namespace, Name: name}}
	d.lookedUp = append(d.lookedUp, at)
	return at
}

// atHost represents the nodes with a hostname.
func atHost(hostname string) Ref { return Ref{Nodes, types.NamespacedName{Name: hostname}} }

// Host reports whether a node with the hostname exists.
func (d *dependencies) Host(hostname string) bool {
	d.lookedUp = append(d.lookedUp, atHost(hostname))
	return d.hosted[hostname] > 0
}

// applyHost updates the hostname of a node. Pods look up the hostnames of the nodes with the disks of their volumes.
func (p *podSet) applyHost(name string, node *corev1.Node) {
	before, hostname := p.hosts[name], ""
	if node != nil {
		hostname = node.Labels[corev1.LabelHostname]
	}
	if before == hostname {
		return
	}
	delete(p.hosts, name)
	if p.hosted[before]--; p.hosted[before] <= 0 {
		delete(p.hosted, before)
	}
	if hostname != "" {
		p.hosts[name] = hostname
		p.hosted[hostname]++
	}
	p.reconvert(atHost(before), nil)
	p.reconvert(atHost(hostname), nil)
}

// Claim implements convert.Volumes.
func (d *dependencies) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, _ := d.now(d.record(VolumeClaims, namespace, name)).(*corev1.PersistentVolumeClaim)
	return claim
}

// Volume implements convert.Volumes.
func (d *dependencies) Volume(name string) *corev1.PersistentVolume {
	volume, _ := d.now(d.record(Volumes, "", name)).(*corev1.PersistentVolume)
	return volume
}

// Class implements convert.Volumes.
func (d *dependencies) Class(name string) *storagev1.StorageClass {
	at := d.record(Classes, "", name)
	if at != defaultClass {
		class, _ := d.now(at).(*storagev1.StorageClass)
		return class
	}
	all := make([]*storagev1.StorageClass, 0, len(d.objects[Classes]))
	for _, e := range d.objects[Classes] {
		if class, ok := e.object.(*storagev1.StorageClass); ok {
			all = append(all, class)
		}
	}
	return convert.DefaultClass(all)
}

// Services implements convert.Owners.
func (d *dependencies) Services(namespace string) []*corev1.Service {
	d.record(Services, namespace, "")
	return slices.Collect(maps.Values(d.services[namespace]))
}

// Selector implements convert.Owners.
func (d *dependencies) Selector(namespace string, owner metav1.OwnerReference) *metav1.LabelSelector {
	for k, name := range map[Kind]string{Controllers: "v1", ReplicaSets: "apps/", StatefulSets: "apps/", Deployments: "apps/"} {
		if owner.Kind == k.String() && strings.HasPrefix(owner.APIVersion, name) {
			return d.selectors[d.record(k, namespace, owner.Name)]
		}
	}
	return nil
}

// users returns the pods that looked up a claim when they were converted.
func (d *dependencies) users(namespace, claim string) []*corev1.Pod {
	asked := d.dependents[Ref{VolumeClaims, types.NamespacedName{Namespace: namespace, Name: claim}}]
	list := make([]*corev1.Pod, 0, len(asked))
	for key := range asked {
		if pod := d.pod(key); pod != nil {
			list = append(list, pod)
		}
	}
	return list
}

// convertPod converts a pod and returns the objects that the conversion depends on.
func (d *dependencies) convertPod(pod *corev1.Pod) (model.PodSpec, convert.Disposition, []Ref) {
	d.lookedUp = nil
	if convert.SelectsNamespaces(pod) {
		d.lookedUp = append(d.lookedUp, allNamespaces)
	}
	spec, disposition := convert.Pod(pod, d.vocabulary, &d.around)
	return spec, disposition, d.lookedUp
}

// update records what a pod depends on from now on, and returns what it depended on before.
func (d *dependencies) update(pod types.NamespacedName, on []Ref) []Ref {
	before := d.dependsOn[pod]
	if len(before)+len(on) == 0 {
		return nil
	}
	for _, at := range before {
		delete(d.dependents[at], pod)
		if len(d.dependents[at]) == 0 {
			delete(d.dependents, at)
		}
	}
	delete(d.dependsOn, pod)
	for _, at := range on {
		if d.dependents[at] == nil {
			d.dependents[at] = map[types.NamespacedName]bool{}
		}
		d.dependents[at][pod] = true
	}
	if len(on) > 0 {
		d.dependsOn[pod] = on
	}
	return before
}

// reconvert converts the pods again that depend on an object and that wanted accepts; nil accepts all. Virtual pods are
// few, so it converts all that depend on the object.
func (p *podSet) reconvert(at Ref, wanted func(*corev1.Pod) bool) {
	p.virtuals.convertAgain(at)
	for _, key := range slices.Collect(maps.Keys(p.dependents[at])) {
		pod := p.pod(key)
		if pod != nil && (wanted == nil || wanted(pod)) {
			p.sync(key, p.entry(Ref{Pods, key}), true)
		}
	}
}

// fewUsers is the maximum number of pods that use a claim right after the claim became shared or unshared.
const fewUsers = 2

// reconvertSharers converts the other pods of claims again, for claims that only one pod may use, and claims that may have
// become shared or unshared.
func (p *podSet) reconvertSharers(key types.NamespacedName, depends []Ref) {
	for _, at := range depends {
		if at.Kind != VolumeClaims || len(p.dependents[at]) == 0 {
			continue
		}
		claim, _ := p.now(at).(*corev1.PersistentVolumeClaim)
		if len(p.dependents[at]) <= fewUsers || claim != nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			p.reconvert(at, func(pod *corev1.Pod) bool { return pod.Name != key.Name || pod.Namespace != key.Namespace })
		}
	}
}

// applyDependency updates an object that pods may depend on.
func (p *podSet) applyDependency(at Ref, e *entry) {
	switch at.Kind {
	case Namespaces:
		p.applyNamespace(at.Key.Name, e)
	case Classes:
		p.reconvert(at, nil)
		p.reconvert(defaultClass, nil)
	case LimitRanges, RuntimeClasses:
		shown := at
		if at.Kind == LimitRanges {
			shown = rangesOf(at.Key.Namespace)
		}
		p.virtuals.convertAgain(shown)
		p.daemons.admit(at)
	case Services:
		p.applyService(at, e)
	case ReplicaSets, StatefulSets, Controllers, Deployments, Jobs:
		p.applySelector(at, e)
		p.replicas.apply(at, e)
	default:
		p.reconvert(at, nil)
	}
}

func (p *podSet) applyNamespace(name string, e *entry) {
	before, known := p.namespaces[name]
	object := e.object
	switch {
	case object == nil:
		delete(p.namespaces, name)
	case known && maps.Equal(before, object.GetLabels()):
		return
	default:
		p.namespaces[name] = object.GetLabels()
	}
	p.reconvert(allNamespaces, nil)
}

func (p *podSet) applyService(at Ref, e *entry) {
	namespace := p.services[at.Key.Namespace]
	before := namespace[at.Key.Name]
	service, _ := e.object.(*corev1.Service)
	switch {
	case service == nil:
		delete(namespace, at.Key.Name)
		if len(namespace) == 0 {
			delete(p.services, at.Key.Namespace)
		}
	case namespace == nil:
		p.services[at.Key.Namespace] = map[string]*corev1.Service{at.Key.Name: service}
	default:
		namespace[at.Key.Name] = service
	}
	if before != nil && service != nil && maps.Equal(before.Spec.Selector, service.Spec.Selector) {
		return
	}
	p.reconvert(allServices(at.Key.Namespace), func(pod *corev1.Pod) bool {
		return before != nil && convert.Selected(before, pod) || service != nil && convert.Selected(service, pod)
	})
}

func (p *podSet) applySelector(at Ref, e *entry) {
	if p.around.DefaultSpread == nil {
		return
	}
	before := p.selectors[at]
	now := convert.SelectorOf(e.object)
	if now == nil {
		delete(p.selectors, at)
	} else {
		p.selectors[at] = now
	}
	if metav1.FormatLabelSelector(before) != metav1.FormatLabelSelector(now) {
		p.reconvert(at, nil)
	}
}
