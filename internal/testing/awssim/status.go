package awssim

import (
	"slices"
	"time"
)

type xmlCheck struct {
	Status string `xml:"status"`
	Name   string `xml:"details>item>name"`
	Detail string `xml:"details>item>status"`
	Since  string `xml:"details>item>impairedSince,omitempty"`
}

type xmlStatusEvent struct {
	ID          string `xml:"instanceEventId"`
	Code        string `xml:"code"`
	Description string `xml:"description"`
	NotBefore   string `xml:"notBefore"`
}

type xmlStatus struct {
	ID       string           `xml:"instanceId"`
	Zone     string           `xml:"availabilityZone"`
	ZoneID   string           `xml:"availabilityZoneId"`
	State    xmlState         `xml:"instanceState"`
	System   xmlCheck         `xml:"systemStatus"`
	Instance xmlCheck         `xml:"instanceStatus"`
	EBS      xmlCheck         `xml:"attachedEbsStatus"`
	Events   []xmlStatusEvent `xml:"eventsSet>item,omitempty"`
}

// describeInstanceStatus implements ec2:DescribeInstanceStatus: it returns running instances only, unless all are
// requested. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html
func describeInstanceStatus(c *Cloud, r *request, now time.Time) (any, error) {
	ids := r.form.strings("InstanceId")
	if len(ids) > 0 && r.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	seen := c.seenAt(now)
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	instances, err := c.visible(ids, seen)
	if err != nil {
		return nil, err
	}
	instances = slices.DeleteFunc(instances, func(i *instance) bool {
		return i.stateAt(seen) != running && !r.form.boolean("IncludeAllInstances")
	})
	instances, err = keep(filters, instances, func(i *instance) facts {
		return r.facts(nil, func() any { return i.statusXML(seen) })
	})
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlStatus `xml:"instanceStatusSet>item,omitempty"`
		Next  string      `xml:"nextToken,omitempty"`
	}
	instances, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, instances, func(i *instance) string { return i.ID })
	for _, i := range instances {
		out.Items = append(out.Items, i.statusXML(seen))
	}
	return out, err
}

func (i *instance) statusXML(seen time.Time) xmlStatus {
	state := i.stateAt(seen)
	item := xmlStatus{i.ID, i.Zone, i.ZoneID, xmlState{stateCodes[state], state}, i.check("system"), i.check("instance"), i.check("ebs"), nil}
	for _, e := range i.events {
		item.Events = append(item.Events, xmlStatusEvent{e.id, e.code, e.description, iso(e.notBefore)})
	}
	return item
}

func (i *instance) check(which string) xmlCheck {
	if i.impairment == which || which == "ebs" && i.impairment == "ebs-data" {
		return xmlCheck{"impaired", "reachability", "failed", iso(i.impaired)}
	}
	return xmlCheck{"ok", "reachability", "passed", ""}
}
