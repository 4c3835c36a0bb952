package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// policyOf returns the policy with which the decision of a capture was made.
func policyOf(o *capture.Options) Policy {
	p := Policy{Preferences: o.PreferencePolicy, MinValues: o.MinValuesPolicy, NodePrice: o.NodeOverheadPrice,
		PackingEffort: o.PackingEffort, WorkBudget: o.WorkBudget,
		SchedulerConfig: o.SchedulerConfig, UnreadyBrake: o.UnreadyBrake,
		PodRules: convert.PodRules{PriorityCutoff: o.PriorityCutoff, Delay: o.NewPodDelay.Duration}}
	p.prices = o.PriceRules
	if d := o.Disrupt; d != nil {
		p.FeatureGates = d.FeatureGates
		p.UntilStable, p.Economics = d.UntilStable,
			Economics{d.Payback.Duration, cmp.Or(d.MinStay, &d.Payback).Duration, d.MovePrice, d.MinSaving}
	}
	return p
}

// WriteCapture writes the input, the policy and the answer to a file, which replay reads.
func WriteCapture(path string, w *Manifests, p Policy, a Answer) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	document := capture.Document{
		Input: capture.Input{Objects: w.given, Cluster: w.seenIn, Sale: w.sale, Buffers: w.buffers.captured(), Denied: w.denied},
		Options: capture.Options{Now: w.now, PreferencePolicy: p.Preferences, MinValuesPolicy: p.MinValues, NodeOverheadPrice: p.NodePrice,
			PackingEffort: p.PackingEffort, WorkBudget: p.WorkBudget, SchedulerConfig: p.SchedulerConfig,
			UnreadyBrake: p.UnreadyBrake, PriorityCutoff: p.PodRules.PriorityCutoff, NewPodDelay: metav1.Duration{Duration: p.PodRules.Delay},
			MaxPods: w.mostPods, Namespace: w.home, PriceRules: w.prices},
		Answer: text,
	}
	if w.options != nil { // of a controller
		document.Options.Replicas, document.Options.PoolSelector = w.options.Replicas, w.options.PoolSelector
	}
	if _, disrupt := a.(*DisruptAnswer); disrupt {
		e := &p.Economics
		document.Options.Disrupt = &capture.Disrupt{UntilStable: p.UntilStable, Payback: metav1.Duration{Duration: e.Payback},
			MinStay: &metav1.Duration{Duration: e.MinStay}, MovePrice: e.MovePrice, MinSaving: e.MinSaving, FeatureGates: p.FeatureGates}
	}
	if err := document.Write(path); err != nil {
		return fmt.Errorf("writing: %w", Readable(err))
	}
	return nil
}

// readCapture adds the input of a capture to that of other files.
func (o *Manifests) readCapture(origin string, text []byte) {
	document, err := capture.Parse(text)
	if err != nil {
		o.problem(fmt.Errorf("%s: %w", origin, err))
		return
	}
	o.takeCapture(origin, document)
}

func (o *Manifests) takeCapture(origin string, document *capture.Document) {
	o.sale, o.options, o.denied = document.Input.Sale, &document.Options, document.Input.Denied
	o.readSelection(origin)
	o.whole = o.whole || len(document.Input.Cluster) > 0
	o.home = cmp.Or(o.home, document.Options.Namespace)
	for _, s := range document.Input.Buffers {
		o.buffers.shapes[s.Buffer] = s
	}
	for i, text := range document.Input.Objects {
		o.read(fmt.Sprintf("%s: input.objects[%d]", origin, i), text)
	}
	for i, text := range document.Input.Cluster {
		o.readLive(fmt.Sprintf("%s: input.cluster[%d]", origin, i), text)
	}
}

// readSelection reads the selector of the controller's pools.
func (o *Manifests) readSelection(origin string) {
	if o.options.PoolSelector == "" {
		return
	}
	selector, err := labels.Parse(o.options.PoolSelector)
	if err != nil {
		o.problem(fmt.Errorf("%s: options.poolSelector: %w", origin, err))
		return
	}
	o.selection = karpv1.Selection{Selector: selector}
}

// readLive adds an object of a cluster.
func (o *Manifests) readLive(origin string, text []byte) {
	var head objectHead
	if err := json.Unmarshal(text, &head); err != nil {
		o.problem(fmt.Errorf("%s: %s", origin, headProblem(text, err)))
		return
	}
	if err := o.boundQuantities(&head, text); err != nil {
		o.reject(origin, &head, []error{err})
		return
	}
	object, _, err := o.decoder.Decode(text, nil, nil)
	if err != nil {
		o.problem(fmt.Errorf("%s: %s", origin, decodeProblem(text, err)))
		return
	}
	if o.take(origin, object, true) && o.keep {
		o.seenIn = append(o.seenIn, bytes.Clone(text))
	}
}

// Brief returns the answer as one line: new nodes, their price in USD per hour, and pods that no node takes.
func (a *LaunchAnswer) Brief() string {
	return fmt.Sprintf("%s for %.4f USD per hour, %s unschedulable", plural(len(a.Nodes), "new node"), a.PricePerHour,
		plural(len(a.Unschedulable), "pod"))
}

// Replayed is the comparison of a recorded decision with the same decision now.
type Replayed struct {
	// Before and Now are the answers in a clause each; Before is "" if none is recorded. Differs lists the fields that differ.
	Before, Now string
	Differs     []string
	// Problems are errors of objects in the capture.
	Problems []error
	// Flags are those of simulate that request this kind of answer.
	Flags string
}

// Replay repeats the decision of a capture. Objects in it that cannot be read were unreadable before, or were damaged
// since; the answers are compared regardless.
func Replay(path string) (*Replayed, error) {
	o, document, p, err := restore(path)
	if err != nil {
		return nil, err
	}
	r := &Replayed{}
	fresh := r.decide(o, p, document.Options.Disrupt != nil)
	r.Now, r.Problems = fresh.Brief(), o.Problems
	if document.Answer == nil { // of a controller
		return r, nil
	}
	before, differs, err := compareAnswers(document.Answer, fresh)
	if err != nil {
		return nil, inputErrorf("%s: answer: %w", path, err)
	}
	r.Before, r.Differs = before.Brief(), differs
	return r, nil
}

// restore reads the input and the policy of a capture.
func restore(path string) (*Manifests, *capture.Document, *Policy, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, nil, nil, inputErrorf("reading the capture: %w", err)
	}
	document, err := capture.Parse(data)
	if err != nil {
		return nil, nil, nil, inputErrorf("%s: %w", path, err)
	}
	o, err := newManifests()
	if err != nil {
		return nil, nil, nil, err
	}
	p := policyOf(&document.Options)
	if err := p.Check(); err != nil {
		return nil, nil, nil, inputErrorf("%s: options: %w", path, err)
	}
	if document.Options.MaxPods > 0 {
		o.mostPods = document.Options.MaxPods
	}
	o.takeCapture(path, document)
	return o, document, &p, o.complete(time.Time{}, p)
}

// decide repeats the decision, and records how simulate is asked for it.
func (r *Replayed) decide(o *Manifests, p *Policy, disrupt bool) Answer {
	if !disrupt {
		return o.Decide(p, 1).Answer()
	}
	r.Flags = " --disrupt"
	if p.UntilStable {
		r.Flags += " --until-stable"
	}
	return o.Disrupt(p, 1).Answer()
}

// compareAnswers returns the fields in which a recorded answer and a new one differ in any byte.
func compareAnswers(recorded json.RawMessage, fresh Answer) (before Answer, differs []string, err error) {
	before = emptyLike(fresh)
	decoder := json.NewDecoder(bytes.NewReader(recorded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(before); err != nil {
		return nil, nil, err
	}
	old, err := fieldsOf(before)
	if err != nil {
		return nil, nil, err
	}
	current, err := fieldsOf(fresh)
	if err != nil {
		return nil, nil, err
	}
	for name := range old {
		if !bytes.Equal(old[name], current[name]) {
			differs = append(differs, name)
		}
	}
	for name := range current {
		if _, had := old[name]; !had {
			differs = append(differs, name)
		}
	}
	slices.Sort(differs)
	return before, differs, nil
}

// emptyLike returns an empty report of the same kind.
func emptyLike(r Answer) Answer {
	if _, disrupt := r.(*DisruptAnswer); disrupt {
		return &DisruptAnswer{}
	}
	return &LaunchAnswer{}
}

// fieldsOf returns the fields of a report except the statistics, which differ each time, and the objects that were missing:
// a capture has what was assumed in their place.
func fieldsOf(r Answer) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	err = json.Unmarshal(text, &fields)
	delete(fields, "stats")
	delete(fields, "missing")
	return fields, err
}
