package v1alpha5

import (
	"errors"
	"fmt"

	"sigs.k8s.io/json"

	"github.com/karpenter-go/karpenter/internal/wire"
)

// recode decodes an untyped value, which is at the path, into an API type. It adds notes on unknown fields.
func recode(value, into any, at string, notes *notes) error {
	encoded, faults, err := wire.Bound([]byte(show(value)))
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s.%s: %s", at, faults[0].Field, faults[0].Why)
	}
	unknown, err := json.UnmarshalStrict(encoded, into, json.DisallowUnknownFields)
	if err != nil {
		return err
	}
	for _, u := range unknown {
		field := at
		if of, located := errors.AsType[json.FieldError](u); located {
			field += "." + of.FieldPath()
		}
		notes.add(Repaired, field, "", noSuchField)
	}
	return nil
}
