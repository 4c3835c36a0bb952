package v1alpha5

import (
	"errors"

	"sigs.k8s.io/json"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// recode decodes an untyped value, which is at the path, into an API type. It adds notes on unknown fields.
func recode(value, into any, at string, notes *notes) error {
	encoded := []byte(show(value))
	if err := karpv1.BoundQuantities(encoded, into); err != nil {
		return err
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
