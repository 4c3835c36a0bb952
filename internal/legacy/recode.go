package legacy

import (
	"errors"

	"sigs.k8s.io/json"
)

// recode reads an untyped value, which is at the path, into a type of the API; fields that it does not have are noted.
func recode(value, into any, at string, notes *notes) error {
	unknown, err := json.UnmarshalStrict([]byte(show(value)), into, json.DisallowUnknownFields)
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
