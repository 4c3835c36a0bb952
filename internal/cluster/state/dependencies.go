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
	convert.Around
	// namespaces holds the labels by name, shared with Around.
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

func (s *State) newDependencies(spread []corev1.TopologySpreadConstraint) {
	a := &s.dependencies
	a.namespaces, a.services, a.selectors = map[string]map[string]string{}, map[string]map[string]*corev1.Service{},
		map[Ref]*metav1.LabelSelector{}
	a.hosts, a.hosted = map[string]string{}, map[string]int{}
	a.drivers, a.driversOf = map[string]driverNodes{}, map[string]map[string]bool{}
	a.dependents, a.dependsOn = map[Ref]map[types.NamespacedName]bool{}, map[types.NamespacedName][]Ref{}
	a.Around = convert.Around{
		Namespaces: a.namespaces, Volumes: lookups{s}, Users: s.users, Host: lookups{s}.Host, Everywhere: lookups{s}.Everywhere,
		DefaultSpread: convert.DefaultSpread(spread, lookups{s}),
		Admission:     lookups{s},
	}
}

// lookups serves conversions, and records the objects that they look up. The store is locked meanwhile.
type lookups struct{ *State }

func (l lookups) record(k Kind, namespace, name string) Ref {
	at := Ref{k, types.NamespacedName{Namespace: namespace, Name: name}}
	l.dependencies.lookedUp = append(l.dependencies.lookedUp, at)
	return at
}

// atHost represents the nodes with a hostname.
func atHost(hostname string) Ref { return Ref{Nodes, types.NamespacedName{Name: hostname}} }

// Host reports whether a node with the hostname exists.
func (l lookups) Host(hostname string) bool {
	l.dependencies.lookedUp = append(l.dependencies.lookedUp, atHost(hostname))
	return l.dependencies.hosted[hostname] > 0
}

// applyHost updates the hostname of a node. Pods look up the hostnames of the nodes with the disks of their volumes.
func (s *State) applyHost(name string, node *corev1.Node) {
	before, hostname := s.dependencies.hosts[name], ""
	if node != nil {
		hostname = node.Labels[corev1.LabelHostname]
	}
	if before == hostname {
		return
	}
	delete(s.dependencies.hosts, name)
	if s.dependencies.hosted[before]--; s.dependencies.hosted[before] <= 0 {
		delete(s.dependencies.hosted, before)
	}
	if hostname != "" {
		s.dependencies.hosts[name] = hostname
		s.dependencies.hosted[hostname]++
	}
	s.reconvert(atHost(before), nil)
	s.reconvert(atHost(hostname), nil)
}

// Claim implements convert.Volumes.
func (l lookups) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, _ := l.now(l.record(VolumeClaims, namespace, name)).(*corev1.PersistentVolumeClaim)
	return claim
}

// Volume implements convert.Volumes.
func (l lookups) Volume(name string) *corev1.PersistentVolume {
	volume, _ := l.now(l.record(Volumes, "", name)).(*corev1.PersistentVolume)
	return volume
}

// Class implements convert.Volumes.
func (l lookups) Class(name string) *storagev1.StorageClass {
	at := l.record(Classes, "", name)
	if at != defaultClass {
		class, _ := l.now(at).(*storagev1.StorageClass)
		return class
	}
	all := make([]*storagev1.StorageClass, 0, len(l.objects[Classes]))
	for _, e := range l.objects[Classes] {
		if class, ok := e.object.(*storagev1.StorageClass); ok {
			all = append(all, class)
		}
	}
	return convert.DefaultClass(all)
}

// Services implements convert.Owners.
func (l lookups) Services(namespace string) []*corev1.Service {
	l.record(Services, namespace, "")
	return slices.Collect(maps.Values(l.dependencies.services[namespace]))
}

// Selector implements convert.Owners.
func (l lookups) Selector(namespace string, owner metav1.OwnerReference) *metav1.LabelSelector {
	for k, name := range map[Kind]string{Controllers: "v1", ReplicaSets: "apps/", StatefulSets: "apps/", Deployments: "apps/"} {
		if owner.Kind == k.String() && strings.HasPrefix(owner.APIVersion, name) {
			return l.dependencies.selectors[l.record(k, namespace, owner.Name)]
		}
	}
	return nil
}

// users returns the pods that looked up a claim when they were converted.
func (s *State) users(namespace, claim string) []*corev1.Pod {
	asked := s.dependencies.dependents[Ref{VolumeClaims, types.NamespacedName{Namespace: namespace, Name: claim}}]
	list := make([]*corev1.Pod, 0, len(asked))
	for key := range asked {
		if pod, ok := s.now(Ref{Pods, key}).(*corev1.Pod); ok {
			list = append(list, pod)
		}
	}
	return list
}

// convertPod converts a pod and returns the objects that the conversion depends on.
func (s *State) convertPod(pod *corev1.Pod) (model.PodSpec, convert.Disposition, []Ref) {
	s.dependencies.lookedUp = nil
	if convert.SelectsNamespaces(pod) {
		s.dependencies.lookedUp = append(s.dependencies.lookedUp, allNamespaces)
	}
	spec, disposition := convert.Pod(pod, s.vocabulary, &s.dependencies.Around)
	return spec, disposition, s.dependencies.lookedUp
}

// update records what a pod depends on from now on, and returns what it depended on before.
func (a *dependencies) update(pod types.NamespacedName, on []Ref) []Ref {
	before := a.dependsOn[pod]
	for _, at := range before {
		delete(a.dependents[at], pod)
		if len(a.dependents[at]) == 0 {
			delete(a.dependents, at)
		}
	}
	delete(a.dependsOn, pod)
	for _, at := range on {
		if a.dependents[at] == nil {
			a.dependents[at] = map[types.NamespacedName]bool{}
		}
		a.dependents[at][pod] = true
	}
	if len(on) > 0 {
		a.dependsOn[pod] = on
	}
	return before
}

// reconvert converts the pods again that depend on an object and that wanted accepts; nil accepts all. Virtual pods are
// few, so it converts all that depend on the object.
func (s *State) reconvert(at Ref, wanted func(*corev1.Pod) bool) {
	s.reconvertVirtual(at)
	for _, key := range slices.Collect(maps.Keys(s.dependencies.dependents[at])) {
		pod, _ := s.now(Ref{Pods, key}).(*corev1.Pod)
		if pod != nil && (wanted == nil || wanted(pod)) {
			s.syncPod(key, s.entry(Ref{Pods, key}), true)
		}
	}
}

// fewUsers is the maximum number of pods that use a claim right after the claim became shared or unshared.
const fewUsers = 2

// reconvertSharers converts the other pods of claims again, for claims that only one pod may use, and claims that may have
// become shared or unshared.
func (s *State) reconvertSharers(key types.NamespacedName, depends []Ref) {
	for _, at := range depends {
		if at.Kind != VolumeClaims || len(s.dependencies.dependents[at]) == 0 {
			continue
		}
		claim, _ := s.now(at).(*corev1.PersistentVolumeClaim)
		if len(s.dependencies.dependents[at]) <= fewUsers || claim != nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			s.reconvert(at, func(pod *corev1.Pod) bool { return pod.Name != key.Name || pod.Namespace != key.Namespace })
		}
	}
}

// applyDependency updates an object that pods may depend on.
func (s *State) applyDependency(at Ref, e *entry) {
	switch at.Kind {
	case Namespaces:
		s.applyNamespace(at.Key.Name, e)
	case Classes:
		s.reconvert(at, nil)
		s.reconvert(defaultClass, nil)
	case LimitRanges, RuntimeClasses:
		s.applyAdmission(at)
	case Services:
		s.applyService(at, e)
	case ReplicaSets, StatefulSets, Controllers, Deployments, Jobs:
		s.applySelector(at, e)
		s.applyScale(at, e)
	default:
		s.reconvert(at, nil)
	}
}

func (s *State) applyNamespace(name string, e *entry) {
	before, known := s.dependencies.namespaces[name]
	object := e.object
	switch {
	case object == nil:
		delete(s.dependencies.namespaces, name)
	case known && maps.Equal(before, object.GetLabels()):
		return
	default:
		s.dependencies.namespaces[name] = object.GetLabels()
	}
	s.reconvert(allNamespaces, nil)
}

func (s *State) applyService(at Ref, e *entry) {
	namespace := s.dependencies.services[at.Key.Namespace]
	before := namespace[at.Key.Name]
	service, _ := e.object.(*corev1.Service)
	switch {
	case service == nil:
		delete(namespace, at.Key.Name)
		if len(namespace) == 0 {
			delete(s.dependencies.services, at.Key.Namespace)
		}
	case namespace == nil:
		s.dependencies.services[at.Key.Namespace] = map[string]*corev1.Service{at.Key.Name: service}
	default:
		namespace[at.Key.Name] = service
	}
	if before != nil && service != nil && maps.Equal(before.Spec.Selector, service.Spec.Selector) {
		return
	}
	s.reconvert(allServices(at.Key.Namespace), func(pod *corev1.Pod) bool {
		return before != nil && convert.Selected(before, pod) || service != nil && convert.Selected(service, pod)
	})
}

func (s *State) applySelector(at Ref, e *entry) {
	if s.dependencies.DefaultSpread == nil {
		return
	}
	before := s.dependencies.selectors[at]
	now := convert.SelectorOf(e.object)
	if now == nil {
		delete(s.dependencies.selectors, at)
	} else {
		s.dependencies.selectors[at] = now
	}
	if metav1.FormatLabelSelector(before) != metav1.FormatLabelSelector(now) {
		s.reconvert(at, nil)
	}
}
