package convert

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/cloud"
)

// decode parses an object as a user might write it; an unknown field is an error.
func decode[T any](t testing.TB, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("reading the fixture: %v\n%s", err, text)
	}
	return object
}

// words returns a vocabulary with everything that a provider can declare.
func words() *Vocabulary {
	return NewVocabulary(cloud.Declared{
		WellKnown:      []string{"example.com/size"},
		Restricted:     []string{"example.com"},
		Aliases:        map[string]string{"old.example.com/zone": "topology.kubernetes.io/zone"},
		ValueAliases:   map[string]map[string]string{"topology.kubernetes.io/zone": {"use1-az1": "us-east-1a"}},
		ReservationKey: "example.com/reservation",
	}, schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"})
}
