package neutral

import "slices"

// Change is a change to an input with which a plan must not cost more.
type Change struct {
	Name string
	// Monotone changes may make a plan cheaper; all others leave the best plan as it is.
	Monotone bool
	// edit changes the input, and reports whether there was something to change.
	edit func(*Input) bool
	// fit is in the place of edit for a change that depends on the plan without it.
	fit func(*Input, Outcome) bool
}

// Apply returns the changed input, or nil if the change is about something that the input does not have. The outcome is
// that without the change.
func (c *Change) Apply(to *Input, without Outcome) *Input {
	changed := to.Clone()
	if c.edit != nil && !c.edit(changed) || c.fit != nil && !c.fit(changed, without) {
		return nil
	}
	changed.Name += ", " + c.Name
	return changed
}

// Changes returns all changes.
func Changes() []Change {
	return slices.Concat(limitChanges(), fittingChanges(), poolChanges(), valueChanges(), zoneChanges(), hostChanges(),
		podChanges(), objectChanges(), boughtChanges(), monotoneChanges())
}

// always returns an edit that every input has room for.
func always(edit func(*Input)) func(*Input) bool {
	return func(in *Input) bool {
		edit(in)
		return true
	}
}

// eachTemplate returns an edit of what pods are made from. It reports whether any of them was changed.
func eachTemplate(edit func(template) bool) func(*Input) bool {
	return func(in *Input) bool {
		changed := false
		for _, t := range in.templates() {
			changed = edit(t) || changed
		}
		return changed
	}
}
