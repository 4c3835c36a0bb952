package v1

import "strings"

// Inert is a field of a class that is accepted and has no effect yet.
// +kubebuilder:object:generate=false
type Inert struct {
	// Field is its path, such as spec.amiFamily.
	Field string
	// Text describes what that means, and follows the field in a sentence.
	Text string
	// Blocks means that no machine is launched with the class as long as the field is set.
	Blocks bool
}

func (i Inert) String() string { return i.Field + " " + i.Text }

// NotYetActedOn returns the fields that the class sets and that have no effect yet, in a fixed order. Conditions,
// events and the plugin report them in these words. There are none at present.
func (c *EC2NodeClass) NotYetActedOn() []Inert {
	return nil
}

// NotYetActedOnAt returns the text about the fields of that list whose path begins with the given one, or "".
func (c *EC2NodeClass) NotYetActedOnAt(path string) string {
	var texts []string
	for _, field := range c.NotYetActedOn() {
		if strings.HasPrefix(field.Field, path) {
			texts = append(texts, field.String())
		}
	}
	return strings.Join(texts, "; ")
}
