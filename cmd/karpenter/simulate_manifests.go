package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// manifests are the objects of some files, by kind, in the order in which they were read.
type manifests struct {
	pools      []from[*karpv1.NodePool]
	claims     []from[*karpv1.NodeClaim]
	nodes      []from[*corev1.Node]
	pods       []from[*corev1.Pod]
	daemons    []from[*appsv1.DaemonSet]
	workloads  []workload
	priorities map[string]int32
	// typesFile and providerLabels are what a folder has beside its manifests: instance-types.json and meta.json.
	typesFile      string
	providerLabels []string

	passed  map[string]int
	seen    map[string]string
	decoder runtime.Decoder
}

// from is an object and where it was read.
type from[T any] struct {
	object T
	origin string
}

// workload is an object that makes pods of a template.
type workload struct {
	kind     string
	meta     metav1.ObjectMeta
	replicas int
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
}

func readManifests(paths []string, in io.Reader) (*manifests, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, schedulingv1.AddToScheme, karpv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	m := &manifests{
		priorities: map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000},
		passed:     map[string]int{}, seen: map[string]string{},
		decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
	}
	for _, path := range paths {
		if err := m.readPath(path, in); err != nil {
			return nil, &usageError{err}
		}
	}
	m.finish()
	return m, nil
}

// readPath reads a file, a folder's files in the order of their names, or standard input.
func (m *manifests) readPath(path string, in io.Reader) error {
	if path == "-" {
		data, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("reading standard input: %w", err)
		}
		return m.readAll("standard input", data)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", readable(err))
	}
	if !info.IsDir() {
		return m.readFile(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", readable(err))
	}
	found := false
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name())
		switch extension := filepath.Ext(file); {
		case entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, extension):
			continue
		case entry.Name() == "instance-types.json":
			m.typesFile = file
			continue
		case entry.Name() == "meta.json":
			if err := m.readMeta(file); err != nil {
				return err
			}
			continue
		}
		found = true
		if err := m.readFile(file); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s: has no file named *.yaml, *.yml or *.json, want manifests", path)
	}
	return nil
}

// readMeta reads which labels the provider of a folder's types knows.
func (m *manifests) readMeta(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return readable(err)
	}
	var meta struct {
		ProviderLabels []string `json:"providerLabels"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	m.providerLabels = append(m.providerLabels, meta.ProviderLabels...)
	return nil
}

func (m *manifests) readFile(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return readable(err)
	}
	return m.readAll(file, data)
}

// readAll reads a file's documents: JSON values one after the other, or YAML documents.
func (m *manifests) readAll(file string, data []byte) error {
	next := nextYAML(data)
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		next = nextJSON(trimmed)
	}
	for document := 1; ; document++ {
		text, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		origin := fmt.Sprintf("%s: document %d", file, document)
		if err != nil {
			return fmt.Errorf("%s: %s", origin, oneLine(err))
		}
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		if err := m.object(origin, text); err != nil {
			return err
		}
	}
}

func nextJSON(data []byte) func() ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	return func() ([]byte, error) {
		var text json.RawMessage
		if err := decoder.Decode(&text); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, errors.New("is cut off in the middle of a JSON object")
			}
			if errors.Is(err, io.EOF) {
				return nil, err
			}
			return nil, jsonProblem(data, err)
		}
		return text, nil
	}
}

func nextYAML(data []byte) func() ([]byte, error) {
	reader := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	return func() ([]byte, error) {
		text, err := reader.Read()
		if err != nil {
			return nil, err
		}
		return yaml.YAMLToJSONStrict(text)
	}
}

// object takes one object, or the members of a list.
func (m *manifests) object(origin string, text []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("%s: is no Kubernetes object: %s", origin, oneLine(err))
	}
	if head.Kind == "" || head.APIVersion == "" {
		return fmt.Errorf("%s: apiVersion or kind is missing, want a Kubernetes object", origin)
	}
	if strings.HasSuffix(head.Kind, "List") {
		for i, item := range head.Items {
			if err := m.object(fmt.Sprintf("%s: item %d", origin, i), item); err != nil {
				return err
			}
		}
		return nil
	}
	origin = fmt.Sprintf("%s: %s %s", origin, head.Kind, namespaced(head.Metadata.Namespace, head.Metadata.Name))
	object, _, err := m.decoder.Decode(text, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		m.passed[head.Kind]++
		return nil
	case err != nil:
		return fmt.Errorf("%s: %s", origin, decodeProblem(text, err))
	}
	return m.take(origin, object)
}

func namespaced(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// take sorts an object by its kind, with what the API server would have filled in.
func (m *manifests) take(origin string, object runtime.Object) error {
	meta, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("%s: is no object with metadata", origin)
	}
	if meta.GetName() == "" {
		return fmt.Errorf("%s: metadata.name is missing, want a name", origin)
	}
	identity := fmt.Sprintf("%T", object)
	switch object := object.(type) {
	case *karpv1.NodePool:
		m.pools = append(m.pools, from[*karpv1.NodePool]{object, origin})
	case *karpv1.NodeClaim:
		m.claims = append(m.claims, from[*karpv1.NodeClaim]{object, origin})
	case *corev1.Node:
		m.nodes = append(m.nodes, from[*corev1.Node]{object, origin})
	case *schedulingv1.PriorityClass:
		m.priorities[object.Name] = object.Value
	default:
		if meta.GetNamespace() == "" {
			meta.SetNamespace(metav1.NamespaceDefault)
		}
		m.takeNamespaced(origin, object)
	}
	identity += " " + key(meta)
	if first := m.seen[identity]; first != "" {
		return fmt.Errorf("%s: metadata.name: there is another object of the name (%s)", origin, first)
	}
	m.seen[identity] = origin
	if meta.GetUID() == "" {
		meta.SetUID(types.UID(strings.ToLower(strings.TrimPrefix(identity, "*"))))
	}
	return nil
}

func (m *manifests) takeNamespaced(origin string, object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		m.pods = append(m.pods, from[*corev1.Pod]{o, origin})
	case *appsv1.DaemonSet:
		m.daemons = append(m.daemons, from[*appsv1.DaemonSet]{o, origin})
	case *appsv1.Deployment:
		m.workloads = append(m.workloads, workload{"Deployment", o.ObjectMeta, or(o.Spec.Replicas, 1), o.Spec.Selector, o.Spec.Template})
	case *appsv1.StatefulSet:
		m.workloads = append(m.workloads, workload{"StatefulSet", o.ObjectMeta, or(o.Spec.Replicas, 1), o.Spec.Selector, o.Spec.Template})
	case *appsv1.ReplicaSet:
		if metav1.GetControllerOfNoCopy(o) == nil { // else its Deployment counts
			m.workloads = append(m.workloads, workload{"ReplicaSet", o.ObjectMeta, or(o.Spec.Replicas, 1), o.Spec.Selector, o.Spec.Template})
		}
	case *batchv1.Job:
		at := or(o.Spec.Parallelism, 1)
		if o.Spec.Completions != nil {
			at = min(at, int(*o.Spec.Completions-o.Status.Succeeded))
		}
		m.workloads = append(m.workloads, workload{"Job", o.ObjectMeta, at, o.Spec.Selector, o.Spec.Template})
	default:
		m.passed[object.GetObjectKind().GroupVersionKind().Kind]++
	}
}

func or(n *int32, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return int(*n)
}

// finish adds the pods that workloads are short of, and what admission would have added to pods.
func (m *manifests) finish() {
	for i := range m.workloads {
		m.expand(&m.workloads[i])
	}
	for _, p := range m.pods {
		admit(&p.object.Spec, m.priorities)
	}
}

// expand makes the pods of a workload that are not among the files.
func (m *manifests) expand(w *workload) {
	missing := w.replicas - m.alive(w)
	for i := range max(0, missing) {
		controller := true
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", w.meta.Name, i), Namespace: w.meta.Namespace, CreationTimestamp: w.meta.CreationTimestamp,
				Labels: w.template.Labels, Annotations: w.template.Annotations,
				OwnerReferences: []metav1.OwnerReference{{Kind: w.kind, Name: w.meta.Name, UID: w.meta.UID, Controller: &controller}},
			},
			Spec:   *w.template.Spec.DeepCopy(),
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
		pod.UID = types.UID(strings.ToLower(w.kind) + "/" + key(pod))
		m.pods = append(m.pods, from[*corev1.Pod]{pod, w.kind + " " + key(&w.meta)})
	}
}

// alive counts the workload's pods among the files.
func (m *manifests) alive(w *workload) int {
	if w.selector == nil {
		return 0
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return 0
	}
	n := 0
	for _, p := range m.pods {
		ended := p.object.Status.Phase == corev1.PodSucceeded || p.object.Status.Phase == corev1.PodFailed
		if _, read := m.seen[fmt.Sprintf("%T %s", p.object, key(p.object))]; read && !ended && p.object.Namespace == w.meta.Namespace &&
			selector.Matches(labels.Set(p.object.Labels)) {
			n++
		}
	}
	return n
}

// admit requests limits where nothing is requested, and resolves the priority class.
func admit(spec *corev1.PodSpec, priorities map[string]int32) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, asked := r.Requests[name]; !asked {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	if priority, known := priorities[spec.PriorityClassName]; known && spec.Priority == nil {
		spec.Priority = &priority
	}
}

// ignored says how many objects of which kinds were passed over.
func (m *manifests) ignored() []string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(m.passed)) {
		lines = append(lines, fmt.Sprintf("%d of kind %s", m.passed[kind], kind))
	}
	return lines
}
