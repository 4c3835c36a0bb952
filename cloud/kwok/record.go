package kwok

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

const (
	// LabelRecord is set to "true" on the ConfigMaps that hold the records of machines.
	LabelRecord = karpv1.OwnAnnotationPrefix + "kwok-machine"

	providerScheme = "kwok://"
	namePrefix     = "kwok-"
	recordPrefix   = "kwok-machine-"
	recordField    = "machine"
)

// record is the simulated cloud's state of a machine, stored as JSON in a ConfigMap.
//
//	launched --RegisterAt--> Registered
//	    \____________________/
//	              | Terminate
//	              v
//	        record deleted
type record struct {
	// Name is the name of the Node, and equals the provider ID without its scheme.
	Name     string    `json:"name"`
	Claim    string    `json:"claim"`
	ClaimUID types.UID `json:"claimUID"`
	Launched time.Time `json:"launched"`
	// RegisterAt is when the Node is created. Registered is true once it has been created.
	RegisterAt time.Time `json:"registerAt"`
	Registered bool      `json:"registered,omitempty"`
	// Labels are the machine's labels. NodeLabels are the additional labels of the Node.
	Labels     map[string]string `json:"labels"`
	NodeLabels map[string]string `json:"nodeLabels"`
	// Capacity and Allocatable are in the units of cloud.InstanceType.
	Capacity    map[string]int64 `json:"capacity"`
	Allocatable map[string]int64 `json:"allocatable"`
}

// machineName returns the name of the claim's machine. It is the same each time, different for a claim that is created
// later with the same name, and short enough for a label value.
func machineName(claim string, uid types.UID) string {
	const room = 63 - len(namePrefix) - len("-12345")
	sum := sha256.Sum256([]byte(uid))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:5])
	return namePrefix + strings.TrimRight(claim[:min(room, len(claim))], "-.") + "-" + hash
}

func recordName(machine string) string {
	return recordPrefix + strings.TrimPrefix(machine, namePrefix)
}

// machineOf returns the machine's name from a provider ID, and false if the ID is not of this provider.
func machineOf(providerID string) (string, bool) {
	name, ok := strings.CutPrefix(providerID, providerScheme)
	return name, ok && strings.HasPrefix(name, namePrefix)
}

func (r *record) machine() *cloud.Machine {
	return &cloud.Machine{
		ProviderID: providerScheme + r.Name, Claim: r.Claim,
		Labels: r.Labels, Capacity: r.Capacity, Allocatable: r.Allocatable,
		Created: r.Launched,
	}
}

// stored is a record together with the ConfigMap that it was read from.
type stored struct {
	record
	object *corev1.ConfigMap
}

func (p *Provider) configMap(r *record) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("writing the record of machine %s: %w", r.Name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.opts.Namespace, Name: recordName(r.Name),
			Labels: map[string]string{LabelRecord: "true"},
		},
		Data: map[string]string{recordField: string(text)},
	}, nil
}

// parse reads the record of a ConfigMap. A corrupted record is an error.
func parse(object *corev1.ConfigMap) (*stored, error) {
	s := &stored{object: object}
	if err := json.Unmarshal([]byte(object.Data[recordField]), &s.record); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: data[%q] is not the record of a machine: %w", object.Namespace, object.Name, recordField, err)
	}
	if recordName(s.Name) != object.Name {
		return nil, fmt.Errorf("ConfigMap %s/%s: is the record of machine %q, want that of another", object.Namespace, object.Name, s.Name)
	}
	return s, nil
}

// recordObject reads the ConfigMap of a machine. The error is an API error.
func (p *Provider) recordObject(ctx context.Context, machine string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	err := p.call(ctx, "reading the record of machine "+machine, func(ctx context.Context) error {
		return p.opts.Reader.Get(ctx, types.NamespacedName{Namespace: p.opts.Namespace, Name: recordName(machine)}, object)
	})
	return object, err
}

func (p *Provider) record(ctx context.Context, machine string) (*stored, error) {
	object, err := p.recordObject(ctx, machine)
	if err != nil {
		return nil, err
	}
	return parse(object)
}

// save writes a changed record. It fails if the record has been changed since it was read.
func (p *Provider) save(ctx context.Context, s *stored) error {
	object, err := p.configMap(&s.record)
	if err != nil {
		return err
	}
	object.ResourceVersion = s.object.ResourceVersion
	return p.call(ctx, "writing the record of machine "+s.Name, func(ctx context.Context) error {
		return p.opts.Client.Update(ctx, object)
	})
}
