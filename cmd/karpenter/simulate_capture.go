package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/cli"
)

// A capture is one decision with all its inputs, so that it can be reproduced elsewhere.
const (
	captureVersion = "simulate.karpenter-go.github.io/v1alpha1"
	captureKind    = "Capture"
)

// captureDocument is the file. docs/simulate.md describes it for users.
type captureDocument struct {
	metav1.TypeMeta `json:",inline"`
	Input           captureInput    `json:"input"`
	Options         captureOptions  `json:"options"`
	Answer          json.RawMessage `json:"answer"`
}

// captureInput holds the original objects of files and of a cluster, and the available offerings.
type captureInput struct {
	Objects []json.RawMessage `json:"objects"`
	Cluster []json.RawMessage `json:"cluster,omitempty"`
	Sale    *sale             `json:"sale"`
}

type captureOptions struct {
	Now               time.Time `json:"now"`
	PreferencePolicy  string    `json:"preferencePolicy"`
	MinValuesPolicy   string    `json:"minValuesPolicy"`
	NodeOverheadPrice float64   `json:"nodeOverheadPrice"`
	PackingEffort     int       `json:"packingEffort"`
	WorkBudget        int       `json:"workBudget,omitempty"`
	SchedulerConfig   string    `json:"schedulerConfig,omitempty"`
	MaxPods           int       `json:"maxPods,omitempty"`
	// Namespace is that of objects without one; empty means default.
	Namespace string `json:"namespace,omitempty"`
	// Disrupt is set if the decision was about disruption.
	Disrupt *captureDisrupt `json:"disrupt,omitempty"`
}

// captureDisrupt holds the options of --disrupt. Money is USD, and USD per hour.
type captureDisrupt struct {
	UntilStable bool            `json:"untilStable"`
	Payback     metav1.Duration `json:"payback"`
	// MinStay was equal to Payback in captures that do not have it.
	MinStay   *metav1.Duration `json:"minStay,omitempty"`
	MovePrice float64          `json:"movePrice"`
	MinSaving float64          `json:"minSaving"`
	// FeatureGates is the value of the flag.
	FeatureGates string `json:"featureGates,omitempty"`
}

func (o *captureOptions) policy() policy {
	p := policy{preferences: o.PreferencePolicy, minValues: o.MinValuesPolicy, nodePrice: o.NodeOverheadPrice, packingEffort: o.PackingEffort, workBudget: o.WorkBudget,
		schedulerConfig: o.SchedulerConfig}
	if d := o.Disrupt; d != nil {
		p.featureGates = d.FeatureGates
		p.untilStable, p.economics = d.UntilStable, economics{d.Payback.Duration, cmp.Or(d.MinStay, &d.Payback).Duration, d.MovePrice, d.MinSaving}
	}
	return p
}

func writeCapture(path string, w *world, p policy, a report) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	document := captureDocument{
		TypeMeta: metav1.TypeMeta{APIVersion: captureVersion, Kind: captureKind},
		Input:    captureInput{Objects: w.given, Cluster: w.seenIn, Sale: w.sale},
		Options: captureOptions{Now: w.now, PreferencePolicy: p.preferences, MinValuesPolicy: p.minValues, NodeOverheadPrice: p.nodePrice,
			PackingEffort: p.packingEffort, WorkBudget: p.workBudget, SchedulerConfig: p.schedulerConfig, MaxPods: w.mostPods, Namespace: w.home},
		Answer: text,
	}
	if _, disrupt := a.(*disruptAnswer); disrupt {
		document.Options.Disrupt = &captureDisrupt{p.untilStable, metav1.Duration{Duration: p.economics.payback}, &metav1.Duration{Duration: p.economics.minStay}, p.economics.movePrice, p.economics.minSaving, p.featureGates}
	}
	data, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the capture: %w", err)
	}
	return writeFile(path, append(data, '\n'))
}

// readCapture adds the input of a capture to that of other files.
func (o *objects) readCapture(origin string, text []byte) {
	document, err := parseCapture(text)
	if err != nil {
		o.problem(fmt.Errorf("%s: %w", origin, err))
		return
	}
	o.takeCapture(origin, document)
}

func parseCapture(text []byte) (*captureDocument, error) {
	var document captureDocument
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&document); {
	case err != nil:
		return nil, fmt.Errorf("is no capture: %s", oneLine(err))
	case document.APIVersion != captureVersion || document.Kind != captureKind:
		return nil, fmt.Errorf("is %s of %s, want %s of %s", document.Kind, document.APIVersion, captureKind, captureVersion)
	case document.Input.Sale == nil:
		return nil, fmt.Errorf("input.sale: is missing, want what was on sale")
	}
	return &document, nil
}

func (o *objects) takeCapture(origin string, document *captureDocument) {
	o.sale, o.options = document.Input.Sale, &document.Options
	o.home = cmp.Or(o.home, document.Options.Namespace)
	for i, text := range document.Input.Objects {
		o.read(fmt.Sprintf("%s: input.objects[%d]", origin, i), text)
	}
	for i, text := range document.Input.Cluster {
		o.readLive(fmt.Sprintf("%s: input.cluster[%d]", origin, i), text)
	}
}

// readLive adds an object of a cluster.
func (o *objects) readLive(origin string, text []byte) {
	var head objectHead
	if err := json.Unmarshal(text, &head); err != nil {
		o.problem(fmt.Errorf("%s: %s", origin, headProblem(text, err)))
		return
	}
	bounded := o.bounded(origin, &head, text)
	if bounded == nil {
		return
	}
	object, _, err := o.decoder.Decode(bounded, nil, nil)
	if err != nil {
		o.problem(fmt.Errorf("%s: %s", origin, decodeProblem(text, err)))
		return
	}
	if o.take(origin, object, true) && o.keep {
		o.seenIn = append(o.seenIn, bytes.Clone(text))
	}
}

// newReplayCommand returns the verb that repeats a captured decision.
func newReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Make a captured decision again, and say whether it is the same",
		Long: `Reads a capture, as written by karpenter simulate --capture, decides on its input with its options, and compares. The
exit code is 0 when the answer is the same byte for byte, apart from the statistics, and 1 when it is not.`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return cli.UsageErrorf("%d arguments, want one: the file of the capture", len(arguments))
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return replay(arguments[0], command.OutOrStdout(), command.ErrOrStderr())
		},
	}
}

// replay repeats the decision of a capture. Objects in it that cannot be read were unreadable before, or were damaged
// since; they are reported, and the answers are compared regardless.
func replay(path string, out, progress io.Writer) error {
	data, err := readTextFile(path)
	if err != nil {
		return cli.UsageErrorf("reading the capture: %w", err)
	}
	document, err := parseCapture(data)
	if err != nil {
		return cli.UsageErrorf("%s: %w", path, err)
	}
	o, err := newObjects()
	if err != nil {
		return err
	}
	p := document.Options.policy()
	if err := p.check(); err != nil {
		return cli.UsageErrorf("%s: options: %w", path, err)
	}
	if o.mostPods = document.Options.MaxPods; o.mostPods == 0 {
		o.mostPods = mostPods
	}
	o.takeCapture(path, document)
	w, err := newWorld(o, "", p)
	if err != nil {
		return err
	}
	s := simulation{disrupt: document.Options.Disrupt != nil, policy: p, repeat: 1}
	fresh := s.decide(w)
	for _, problem := range w.problems {
		fmt.Fprintln(progress, "karpenter:", oneLine(problem))
	}
	before, differs, err := compareAnswers(document.Answer, fresh)
	if err != nil {
		return cli.UsageErrorf("%s: answer: %w", path, err)
	}
	if len(differs) > 0 {
		return fmt.Errorf("%s: the answer is another one now: %s; it was: %s; what differs: %s; karpenter simulate -f %s%s shows it",
			path, fresh.brief(), before.brief(), strings.Join(differs, ", "), path, s.question())
	}
	fmt.Fprintf(out, "the same answer: %s\n", fresh.brief())
	return nil
}

// question returns the flags that request the same kind of answer.
func (s *simulation) question() string {
	switch {
	case !s.disrupt:
		return ""
	case s.policy.untilStable:
		return " --disrupt --until-stable"
	}
	return " --disrupt"
}

func (a *answer) brief() string {
	return fmt.Sprintf("%s for %.4f USD per hour, %s without a place", cli.Plural(len(a.Nodes), "new node"), a.PricePerHour, cli.Plural(len(a.Unschedulable), "pod"))
}

// compareAnswers returns the fields in which a recorded answer and a new one differ in any byte, except statistics.
func compareAnswers(recorded json.RawMessage, fresh report) (before report, differs []string, err error) {
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
func emptyLike(r report) report {
	if _, disrupt := r.(*disruptAnswer); disrupt {
		return &disruptAnswer{}
	}
	return &answer{}
}

// fieldsOf returns the fields of a report except the statistics, which differ each time.
func fieldsOf(r report) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	err = json.Unmarshal(text, &fields)
	delete(fields, "stats")
	return fields, err
}
