package placement_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// TestScenarios reads testdata/*.txtar. A file begins with its intent; "types" are lines of
//
//	NAME cpu=2 memory=8Gi price=0.10 [spot=0.03] [arch=arm64] [zones=a,b] [out=a/spot,...] [gpu=1]
//	     [label:KEY=VALUE[,VALUE] ...] [volumes=DRIVER:3] [reserved=ZONE/ID:2]
//
// "options" is optional and contains the words ignore-preferences and best-effort-min-values. "objects.yaml" is what a
// user would write; a Deployment represents its pending pods. "plan" is the expected plan. Every scenario is repeated
// in another order, audited, and repeated with its claims in flight.
func TestScenarios(t *testing.T) { golden.Each(t, play) }

func play(t *testing.T, file *golden.File) {
	w := readWorld(t, file.Section("types"), file.Section("objects.yaml"))
	words := strings.Fields(string(file.Section("options")))
	opts := placement.Options{IgnorePreferences: slices.Contains(words, "ignore-preferences"), RelaxMinValues: slices.Contains(words, "best-effort-min-values")}
	snap := w.snapshot(nil)
	p := placement.Schedule(snap, opts)
	check(t, snap, p)
	got := explain.Provision(snap, p)

	again := w.snapshot(rand.New(rand.NewPCG(1, 1)))
	if diff := cmp.Diff(got, explain.Provision(again, placement.Schedule(again, opts))); diff != "" {
		t.Errorf("the plan depends on the order of input:\n%s", diff)
	}
	after := w.launching(p.Claims).snapshot(nil)
	q := placement.Schedule(after, opts)
	check(t, after, q)
	if len(q.Claims) > 0 {
		t.Errorf("with the claims in flight more nodes are launched:\n%s", explain.Provision(after, q))
	}
	file.Check(t, "plan", got)
}

func readWorld(t *testing.T, lines, objects []byte) world {
	t.Helper()
	kinds, labels := readTypes(t, lines)
	v := convert.NewVocabulary(cloud.Declared{WellKnown: labels, ReservationKey: keyReservation}, schema.GroupKind{Group: "example.com", Kind: "Class"})
	catalog, refused := convert.Catalog(kinds, v)
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	w := world{catalog: catalog, storage: &storage{}, attach: map[string]*storagev1.CSINode{}}
	documents := bytes.Split(objects, []byte("\n---\n"))
	for _, first := range []bool{true, false} {
		for i, document := range documents {
			if err := w.readIf(first, document, v); err != nil {
				t.Fatalf("object %d: %v", i, err)
			}
		}
	}
	for i := range w.nodes {
		convert.AddAttachLimits(&w.nodes[i], w.attach[w.nodes[i].Name])
	}
	return w
}

// readIf reads the objects that others refer to in a first pass, all others in a second.
func (w *world) readIf(first bool, document []byte, v *convert.Vocabulary) error {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	background := map[string]runtime.Object{}
	switch head.Kind {
	case "Namespace":
		background["Namespace"] = &corev1.Namespace{}
	case "PersistentVolumeClaim":
		background["PersistentVolumeClaim"] = &corev1.PersistentVolumeClaim{}
	case "PersistentVolume":
		background["PersistentVolume"] = &corev1.PersistentVolume{}
	case "StorageClass":
		background["StorageClass"] = &storagev1.StorageClass{}
	case "CSINode":
		background["CSINode"] = &storagev1.CSINode{}
	case "Node":
		if first {
			return w.noteHost(document)
		}
	}
	into := background[head.Kind]
	switch {
	case (into != nil) != first:
		return nil
	case into == nil:
		return w.read(document, v)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		return err
	}
	switch o := into.(type) {
	case *corev1.Namespace:
		if w.storage.namespaces == nil {
			w.storage.namespaces = map[string]map[string]string{}
		}
		w.storage.namespaces[o.Name] = o.Labels
	case *corev1.PersistentVolumeClaim:
		w.storage.claims = append(w.storage.claims, o)
	case *corev1.PersistentVolume:
		w.storage.volumes = append(w.storage.volumes, o)
	case *storagev1.StorageClass:
		w.storage.classes = append(w.storage.classes, o)
	case *storagev1.CSINode:
		w.attach[o.Name] = o
	}
	return nil
}

// noteHost records the hostname of a node: local volumes refer to it.
func (w *world) noteHost(document []byte) error {
	var node corev1.Node
	if err := yaml.Unmarshal(document, &node); err != nil {
		return err
	}
	w.storage.hosts = append(w.storage.hosts, node.Labels[corev1.LabelHostname])
	return nil
}

func (w *world) host(name string) bool { return slices.Contains(w.storage.hosts, name) }

// storage has the objects behind the volumes of pods, and the namespaces' labels.
type storage struct {
	claims     []*corev1.PersistentVolumeClaim
	volumes    []*corev1.PersistentVolume
	classes    []*storagev1.StorageClass
	namespaces map[string]map[string]string
	hosts      []string
}

func named[T metav1.Object](list []T, name string) (found T) {
	for _, o := range list {
		if o.GetName() == name {
			return o
		}
	}
	return found
}

func (s *storage) Claim(_, name string) *corev1.PersistentVolumeClaim { return named(s.claims, name) }
func (s *storage) Volume(name string) *corev1.PersistentVolume        { return named(s.volumes, name) }
func (s *storage) Class(name string) *storagev1.StorageClass          { return named(s.classes, name) }

func (w *world) read(document []byte, v *convert.Vocabulary) error {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "NodePool":
		var pool karpv1.NodePool
		if err := yaml.UnmarshalStrict(document, &pool); err != nil {
			return err
		}
		pool.UID = types.UID("uid-" + pool.Name)
		pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "example.com", Kind: "Class", Name: "default"}
		if errs := karpv1.Validate(&pool, v.Rules); len(errs) > 0 {
			return errs.ToAggregate()
		}
		if len(pool.Status.Conditions) == 0 {
			pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
			pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
		}
		spec := convert.Pool(&pool, v)
		convert.AddCatalog(&spec, w.catalog, "nothing is for sale")
		w.pools = append(w.pools, spec)
	case "Node":
		var node corev1.Node
		if err := yaml.UnmarshalStrict(document, &node); err != nil {
			return err
		}
		spec, _ := convert.Node(&node, nil, v)
		w.nodes = append(w.nodes, spec)
	case "NodeClaim":
		var claim karpv1.NodeClaim
		if err := yaml.UnmarshalStrict(document, &claim); err != nil {
			return err
		}
		spec, refused := convert.Node(nil, &claim, v)
		if refused != nil {
			return fmt.Errorf("%s: %s", refused.Field, refused.Reason)
		}
		w.nodes = append(w.nodes, spec)
	case "DaemonSet":
		var set appsv1.DaemonSet
		if err := yaml.UnmarshalStrict(document, &set); err != nil {
			return err
		}
		set.UID = types.UID("uid-" + set.Name)
		w.daemons = append(w.daemons, convert.Daemon(&set, v, nil, nil))
	case "Pod":
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict(document, &pod); err != nil {
			return err
		}
		w.add(&pod, v)
	case "Deployment":
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict(document, &d); err != nil {
			return err
		}
		for i := range *d.Spec.Replicas {
			w.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", d.Name, i), Namespace: d.Namespace, Labels: d.Spec.Template.Labels},
				Spec: d.Spec.Template.Spec}, v)
		}
	default:
		return fmt.Errorf("kind is %q, want one that the scenarios know", head.Kind)
	}
	return nil
}

func (w *world) add(pod *corev1.Pod, v *convert.Vocabulary) {
	if pod.UID = types.UID("uid-" + pod.Name); pod.Namespace == "" {
		pod.Namespace = "default"
	}
	if pod.Spec.NodeName == "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
	}
	if pod.Status.NominatedNodeName != "" { // written by Karpenter
		fields := metav1.NewFieldsV1(`{"f:status":{"f:nominatedNodeName":{}}}`)
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: convert.NominationManager, Subresource: "status", FieldsV1: fields}}
	}
	if spec, disposition := convert.Pod(pod, v, &convert.Around{Namespaces: w.storage.namespaces, Volumes: w.storage, Host: w.host}); disposition != convert.Ignore {
		w.pods = append(w.pods, spec)
	}
}

// readTypes reads the lines of types, and returns their provider-specific labels as known.
func readTypes(t *testing.T, lines []byte) (all []cloud.InstanceType, known []string) {
	t.Helper()
	var given []map[string]string
	for line := range strings.Lines(string(lines)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		values := map[string]string{"name": fields[0], "arch": "amd64", "zones": "a"}
		for _, f := range fields[1:] {
			at := strings.LastIndex(f, "=")
			values[f[:at]] = f[at+1:]
			if key, label := strings.CutPrefix(f[:at], "label:"); label && !slices.Contains(known, key) {
				known = append(known, key)
			}
		}
		given = append(given, values)
	}
	for _, values := range given {
		all = append(all, readType(t, values, known))
	}
	return all, known
}

func readType(t *testing.T, values map[string]string, known []string) cloud.InstanceType {
	t.Helper()
	amount := func(name, text string) int64 { return cloud.Amount(name, resource.MustParse(text)) }
	kind := cloud.InstanceType{Name: values["name"], Capacity: map[string]int64{"cpu": amount("cpu", values["cpu"]), "memory": amount("memory", values["memory"]), "pods": 110},
		Requirements: []cloud.Requirement{{Key: keyArch, Operator: "In", Values: []string{values["arch"]}}, {Key: keyOS, Operator: "In", Values: []string{"linux"}}}}
	if gpu := values["gpu"]; gpu != "" {
		kind.Special, kind.Capacity["example.com/gpu"] = true, amount("gpu", gpu)
	}
	if driver, text, ok := strings.Cut(values["volumes"], ":"); ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		kind.AttachLimits = map[string]int{driver: n}
	}
	if zone, text, ok := strings.Cut(values["reserved"], "/"); ok {
		id, text, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		kind.Offerings = append(kind.Offerings, cloud.Offering{Zone: zone, CapacityType: "reserved", Price: 0.0001, Available: n > 0, ReservationID: id, ReservationCount: n})
	}
	for _, key := range known {
		if value, ok := values["label:"+key]; ok {
			kind.Requirements = append(kind.Requirements, cloud.Requirement{Key: key, Operator: "In", Values: strings.Split(value, ",")})
		} else {
			kind.Requirements = append(kind.Requirements, cloud.Requirement{Key: key, Operator: "DoesNotExist"})
		}
	}
	for zone := range strings.SplitSeq(values["zones"], ",") {
		for capacityType, text := range map[string]string{"on-demand": values["price"], "spot": values["spot"]} {
			if text == "" {
				continue
			}
			price, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			out := slices.Contains(strings.Split(values["out"], ","), zone+"/"+capacityType)
			kind.Offerings = append(kind.Offerings, cloud.Offering{Zone: zone, CapacityType: capacityType, Price: price, Available: !out})
		}
	}
	cloud.SortCatalog([]cloud.InstanceType{kind})
	return kind
}
