package instance

import (
	"maps"
	"time"

	"github.com/karpenter-go/karpenter/cloud"
)

// Shift replaces the zones that are avoided as a whole: by ID such as use1-az1, until when.
func (u *Unavailable) Shift(until map[string]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if maps.EqualFunc(u.shifted, until, time.Time.Equal) {
		return
	}
	u.shifted = maps.Clone(until)
	u.version++
}

// Shifted returns until when the zone with the ID is avoided, zero if it is not.
func (u *Unavailable) Shifted(zoneID string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until := u.shifted[zoneID]; until.After(u.now()) {
		return until
	}
	return time.Time{}
}

// avoided returns the zones of the class that are avoided now, by name, and until when.
func (a *TypeSet) avoided(m *Market) map[string]time.Time {
	if m.Shifted == nil {
		return nil
	}
	avoided := map[string]time.Time{}
	for _, z := range a.zones {
		if until := m.Shifted(z.id); z.id != "" && !until.IsZero() {
			avoided[z.name] = until
		}
	}
	return avoided
}

// avoid makes the offerings in avoided zones unavailable, whatever their capacity type. They are not refusals.
func avoid(offerings []cloud.Offering, avoided map[string]time.Time) {
	if len(avoided) == 0 {
		return
	}
	for i := range offerings {
		o := &offerings[i]
		if until, is := avoided[o.Zone]; is {
			o.Available, o.ZoneShifted, o.RefusedAt, o.RetryAt = false, true, time.Time{}, until
		}
	}
}
