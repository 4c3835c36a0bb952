package awssim

import "time"

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
	if volumes, err = keep(filters, volumes, func(v volume) facts { return r.facts(nil, func() any { return v.xml() }) }); err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlVolumeStatus `xml:"volumeStatusSet>item,omitempty"`
		Next  string            `xml:"nextToken,omitempty"`
	}
	volumes, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, volumes, func(v volume) string { return v.id })
	for _, v := range volumes {
		out.Items = append(out.Items, v.xml())
	}
	return out, err
}

// xml returns the status of a volume. There are no events and no actions.
func (v volume) xml() xmlVolumeStatus {
	return xmlVolumeStatus{v.id, v.of.Zone, v.of.ZoneID, v.status(),
		[]xmlVolumeCheck{{"io-enabled", v.io()}, {"io-performance", "not-applicable"}}}
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
