package capture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// Type is the type of the document.
var Type = metav1.TypeMeta{APIVersion: "simulate.karpenter-go.github.io/v1alpha1", Kind: "Capture"}

// Document is the file. docs/simulate.md describes it for users.
type Document struct {
	metav1.TypeMeta `json:",inline"`
	Input           Input   `json:"input"`
	Options         Options `json:"options"`
	// Answer is nil in a capture of the controller.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Input holds the original objects of files and of a cluster, and the available offerings.
type Input struct {
	Objects []json.RawMessage `json:"objects"`
	Cluster []json.RawMessage `json:"cluster,omitempty"`
	Sale    *PriceList        `json:"sale"`
	// Buffers are what the CapacityBuffers refer to, as far as it was read of a cluster.
	Buffers []BufferShape `json:"buffers,omitempty"`
	// Denied are the kinds that the user was not allowed to read.
	Denied []Denied `json:"denied,omitempty"`
}

// Denied is a kind that the user may not read, and how the answer differs because of that.
type Denied struct {
	// Resource is named as in a role: in plural, with its group after a dot. Verb is the missing one.
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
	Effect   string `json:"effect"`
}

// Options are those that the decision depends on.
type Options struct {
	Now               time.Time `json:"now"`
	PreferencePolicy  string    `json:"preferencePolicy"`
	MinValuesPolicy   string    `json:"minValuesPolicy"`
	NodeOverheadPrice float64   `json:"nodeOverheadPrice"`
	PackingEffort     int       `json:"packingEffort"`
	WorkBudget        int       `json:"workBudget,omitempty"`
	SchedulerConfig   string    `json:"schedulerConfig,omitempty"`
	// PriorityCutoff and NewPodDelay are the rules about pods for which no node is launched.
	PriorityCutoff *int32          `json:"priorityCutoff,omitempty"`
	NewPodDelay    metav1.Duration `json:"newPodDelay,omitzero"`
	UnreadyBrake   string          `json:"unreadyBrake,omitempty"`
	// Replicas says that the pods which workloads are about to create are planned, and PoolSelector is the selector of the
	// controller's pools, "" for all. Only captures of controllers have them.
	Replicas     bool   `json:"replicas,omitempty"`
	PoolSelector string `json:"poolSelector,omitempty"`
	MaxPods      int    `json:"maxPods,omitempty"`
	// PriceRules are those of the price file.
	PriceRules []pricerule.Rule `json:"priceRules,omitempty"`
	// Namespace is that of objects without one; empty means default.
	Namespace string `json:"namespace,omitempty"`
	// Disrupt is set if the decision was about disruption.
	Disrupt *Disrupt `json:"disrupt,omitempty"`
}

// Disrupt holds the options of --disrupt. Money is USD, and USD per hour.
type Disrupt struct {
	UntilStable bool            `json:"untilStable"`
	Payback     metav1.Duration `json:"payback"`
	// MinStay was equal to Payback in captures that do not have it.
	MinStay   *metav1.Duration `json:"minStay,omitempty"`
	MovePrice float64          `json:"movePrice"`
	MinSaving float64          `json:"minSaving"`
	// FeatureGates is the value of the flag.
	FeatureGates string `json:"featureGates,omitempty"`
}

// Parse returns the document of a text.
func Parse(text []byte) (*Document, error) {
	var document Document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&document); {
	case err != nil:
		return nil, fmt.Errorf("is not a capture, which simulate --capture writes: %w", err)
	case document.TypeMeta != Type:
		return nil, fmt.Errorf("is %s of %s, want %s of %s", document.Kind, document.APIVersion, Type.Kind, Type.APIVersion)
	case document.Input.Sale == nil:
		return nil, errors.New("input.sale: is missing, want the offerings")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than one document, want one capture in a file")
	}
	return &document, nil
}

// Write writes the document to a file that only its owner may read, or to a device. A file is complete or not there.
func (d *Document) Write(path string) error {
	d.TypeMeta = Type
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the capture: %w", err)
	}
	data = append(data, '\n')
	if about, err := os.Stat(path); err == nil && !about.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o600)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if failed := new(fs.PathError); errors.As(err, &failed) {
		failed.Path = path
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = cmp.Or(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
