package neutral

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Object is an object of the API.
type Object interface {
	runtime.Object
	metav1.Object
}

// Input is what a decision is made from.
type Input struct {
	// Name is the kind of input with its seed, such as purchase-3.
	Name    string
	Types   []InstanceType
	Objects []Object
	// Prices is the text of a price file, "" for none.
	Prices string
}

// PriceFile is the name of the price file in the folder of an input.
const PriceFile = "price-rules"

// of returns the objects of a kind, in their order.
func of[T Object](in *Input) []T {
	var list []T
	for _, o := range in.Objects {
		if t, ok := o.(T); ok {
			list = append(list, t)
		}
	}
	return list
}

func (in *Input) add(objects ...Object) { in.Objects = append(in.Objects, objects...) }

// Clone returns an input that shares nothing with this one.
func (in *Input) Clone() *Input {
	c := &Input{Name: in.Name, Prices: in.Prices}
	for _, t := range in.Types {
		t.Offerings = slices.Clone(t.Offerings)
		c.Types = append(c.Types, t)
	}
	for _, o := range in.Objects {
		c.add(o.DeepCopyObject().(Object))
	}
	return c
}

// Write writes the input into a folder, which is created if needed: a file of instance types, one of objects, and the price
// file.
func (in *Input) Write(folder string) error {
	types, err := json.MarshalIndent(map[string]any{"instanceTypes": in.Types}, "", " ")
	if err != nil {
		return fmt.Errorf("encoding instance types: %w", err)
	}
	var list bytes.Buffer
	for _, o := range in.Objects {
		if err := json.NewEncoder(&list).Encode(o); err != nil {
			return fmt.Errorf("encoding %s: %w", o.GetName(), err)
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder of an input: %w", err)
	}
	files := map[string][]byte{"instance-types.json": types, "objects.json": list.Bytes()}
	if in.Prices != "" {
		files[PriceFile] = []byte(in.Prices)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("writing an input: %w", err)
		}
	}
	return nil
}

// template is what a change of an app's pods edits: the template of a Deployment, or a pod on a node.
type template struct {
	meta *metav1.ObjectMeta
	spec *corev1.PodSpec
	// app is the name of the app, and pods is how many pods it has.
	app  string
	pods int
}

// templates returns what the pods of apps are made from. Pods of DaemonSets are not among them.
func (in *Input) templates() []template {
	var all []template
	for _, d := range of[*appsv1.Deployment](in) {
		all = append(all, template{&d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec, d.Spec.Template.Labels[labelApp],
			int(*d.Spec.Replicas)})
	}
	count := map[string]int{}
	for _, p := range of[*corev1.Pod](in) {
		count[p.Labels[labelApp]]++
	}
	for _, p := range of[*corev1.Pod](in) {
		if app := p.Labels[labelApp]; app != "" {
			all = append(all, template{&p.ObjectMeta, &p.Spec, app, count[app]})
		}
	}
	return all
}

// open returns the pools without taints.
func (in *Input) open() []*karpv1.NodePool {
	return slices.DeleteFunc(of[*karpv1.NodePool](in), func(p *karpv1.NodePool) bool { return len(p.Spec.Template.Spec.Taints) > 0 })
}

// Bound reports whether the input is a fleet, whose pods run on nodes.
func (in *Input) Bound() bool { return len(of[*corev1.Node](in)) > 0 }
