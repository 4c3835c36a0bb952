package awssim

import (
	"slices"
	"time"
)

// volume is a volume that is attached to an instance.
type volume struct {
	id       string
	of       *instance
	impaired bool
}

type xmlVolumeCheck struct {
	Name   string `xml:"name"`
	Status string `xml:"status"`
}

type xmlVolumeStatus struct {
	ID     string           `xml:"volumeId"`
	Zone   string           `xml:"availabilityZone"`
	ZoneID string           `xml:"availabilityZoneId"`
	Status string           `xml:"volumeStatus>status"`
	Checks []xmlVolumeCheck `xml:"volumeStatus>details>item"`
}

// describeVolumeStatus implements ec2:DescribeVolumeStatus for the volumes of running instances. I/O to an impaired
// volume is disabled. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVolumeStatus.html
func describeVolumeStatus(c *Cloud, r *request, now time.Time) (any, error) {
	ids := r.form.strings("VolumeId")
	if len(ids) > 0 && r.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter volumesSet cannot be used with the parameter maxResults")
	}
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	volumes, err := chosen(ids, c.attachedVolumes(now), func(v volume) string { return v.id },
		notFound("vol-", "InvalidVolumeID.Malformed", "InvalidVolume.NotFound", "volume"))
	if err != nil {
		return nil, err
	}
	if volumes, err = keep(filters, volumes, volume.facts); err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlVolumeStatus `xml:"volumeStatusSet>item,omitempty"`
		Next  string            `xml:"nextToken,omitempty"`
	}
	volumes, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, volumes, func(v volume) string { return v.id })
	for _, v := range volumes {
		out.Items = append(out.Items, xmlVolumeStatus{v.id, v.of.Zone, v.of.ZoneID, v.status(),
			[]xmlVolumeCheck{{"io-enabled", v.io()}, {"io-performance", "not-applicable"}}})
	}
	return out, err
}

// attachedVolumes returns the volumes of running instances, in the order of the launches.
func (c *Cloud) attachedVolumes(now time.Time) []volume {
	var all []volume
	seen := c.seenAt(now)
	for _, i := range c.order {
		if i.stateAt(seen) != running {
			continue
		}
		for k, v := range i.volumes {
			all = append(all, volume{v.id, i, i.impairment == "ebs" && k == 0})
		}
	}
	return all
}

func (v volume) status() string {
	if v.impaired {
		return "impaired"
	}
	return "ok"
}

func (v volume) io() string {
	if v.impaired {
		return "failed"
	}
	return "passed"
}

// facts are the values of filters. There are no events and no actions.
func (v volume) facts() facts {
	return func(name string) ([]string, bool) {
		none := []string{"action.code", "action.description", "action.event-id", "event.description", "event.event-id",
			"event.event-type", "event.not-after", "event.not-before"}
		switch {
		case slices.Contains(none, name):
			return nil, true
		case name == "volume-status.details-name":
			return []string{"io-enabled", "io-performance"}, true
		case name == "volume-status.details-status":
			return []string{v.io(), "not-applicable"}, true
		}
		return field(name, map[string]string{"availability-zone": v.of.Zone, "availability-zone-id": v.of.ZoneID,
			"volume-status.status": v.status()})
	}
}
