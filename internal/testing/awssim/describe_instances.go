package awssim

import (
	"maps"
	"slices"
	"time"
)

// describeInstances implements ec2:DescribeInstances. Instances launched by one call have one reservation each here,
// which EC2 allows. Terminated ones are shown for a while.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func describeInstances(c *Cloud, r *request, now time.Time) (any, error) {
	ids := r.form.strings("InstanceId")
	if len(ids) > 0 && r.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	if len(ids) > 1000 {
		return nil, refuse("InvalidParameterValue", "At most 1000 instance ids may be named")
	}
	seen := c.seenAt(now)
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	instances, err := c.remembered(r, ids, seen)
	if err != nil {
		return nil, err
	}
	instances, err = keep(filters, instances, func(i *instance) facts {
		return r.facts(i.tagsAt(seen), func() any { return c.launchXML(i, seen) })
	})
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlReservation `xml:"reservationSet>item,omitempty"`
		Next  string           `xml:"nextToken,omitempty"`
	}
	instances, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, instances, func(i *instance) string { return i.ID })
	for _, i := range instances {
		out.Items = append(out.Items, c.launchXML(i, seen))
	}
	return out, err
}

func (c *Cloud) launchXML(i *instance, seen time.Time) xmlReservation {
	return xmlReservation{i.reservation, c.opts.AccountID, []xmlInstance{c.instanceXML(i, seen)}}
}

// remembered is visible without the instances that FaultForgetHalf or FaultForgetAll hides. A hidden instance is not
// found by its ID.
func (c *Cloud) remembered(r *request, ids []string, seen time.Time) ([]*instance, error) {
	all, half := c.strike(r, FaultForgetAll) != nil, c.strike(r, FaultForgetHalf) != nil
	instances, err := c.visible(ids, seen)
	if err != nil || !all && !half {
		return instances, err
	}
	shown := slices.DeleteFunc(slices.Clone(instances), func(i *instance) bool { return all || slices.Index(c.order, i)%2 == 0 })
	for _, i := range instances {
		if len(ids) > 0 && !slices.Contains(shown, i) {
			return nil, refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", i.ID)
		}
	}
	return shown, nil
}

// visible returns the instances with those IDs, or all, as of the given time. An instance that is not visible is not
// found.
func (c *Cloud) visible(ids []string, seen time.Time) ([]*instance, error) {
	if len(ids) == 0 {
		return slices.DeleteFunc(slices.Clone(c.order), func(i *instance) bool { return i.stateAt(seen) == "" }), nil
	}
	var found []*instance
	var missing []string
	for _, id := range ids {
		if len(id) < 3 || id[:2] != "i-" {
			return nil, refuse("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		i := c.instances[id]
		switch {
		case i == nil || i.stateAt(seen) == "":
			missing = append(missing, id)
		case !slices.Contains(found, i):
			found = append(found, i)
		}
	}
	switch {
	case len(missing) == 1:
		return nil, refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	case len(missing) > 1:
		return nil, refuse("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", join(missing))
	}
	return found, nil
}

func join(ids []string) string {
	s := ""
	for k, id := range ids {
		if k > 0 {
			s += ", "
		}
		s += id
	}
	return s
}

// profileID returns the ID of an instance's profile, and an ID that no profile has if it is gone.
func (c *Cloud) profileID(i *instance) string {
	for _, p := range c.profiles {
		if arn := c.profileARN(i); c.arn("instance-profile", p.path, p.name) == arn {
			return p.id
		}
	}
	return "AIPA0000000000000000"
}

func (c *Cloud) profileARN(i *instance) string {
	if i.Profile == "" {
		return i.spec.profileARN
	}
	path := "/"
	if p := c.profiles[i.Profile]; p != nil {
		path = p.path
	}
	return c.arn("instance-profile", path, i.Profile)
}

type xmlChange struct {
	ID      string   `xml:"instanceId"`
	Current xmlState `xml:"currentState"`
	Before  xmlState `xml:"previousState"`
}

// terminateInstances implements ec2:TerminateInstances. One unknown ID fails the call. Terminating an instance twice is
// not an error. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html
func terminateInstances(c *Cloud, r *request, now time.Time) (any, error) {
	ids := r.form.strings("InstanceId")
	if len(ids) == 0 || len(ids) > 1000 {
		return nil, refuse("InvalidParameterValue", "A call terminates 1 to 1000 instances, not %d", len(ids))
	}
	instances, err := c.visible(ids, c.seenAt(now))
	if err != nil {
		return nil, err
	}
	if r.form.boolean("DryRun") {
		return nil, dryRunError()
	}
	var out struct {
		Items []xmlChange `xml:"instancesSet>item,omitempty"`
	}
	for _, i := range instances {
		before := i.state()
		c.terminate(i, now, "Client.UserInitiatedShutdown")
		out.Items = append(out.Items, xmlChange{i.ID, xmlState{stateCodes[i.state()], i.state()}, xmlState{stateCodes[before], before}})
	}
	return out, nil
}

// createTags implements ec2:CreateTags for instances, launch templates, subnets and security groups: all resources or none.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateTags.html
func createTags(c *Cloud, r *request, now time.Time) (any, error) {
	tags, err := tagsIn(r.form, "Tag")
	if err != nil {
		return nil, err
	}
	ids := r.form.strings("ResourceId")
	if len(ids) == 0 || len(ids) > 1000 || len(tags) == 0 {
		return nil, refuse("MissingParameter", "The request must contain 1 to 1000 resource ids and a tag")
	}
	seen := c.seenAt(now)
	var apply []func()
	for _, id := range ids {
		do, err := c.tagger(id, tags, seen, now)
		if err != nil {
			return nil, err
		}
		apply = append(apply, do)
	}
	if r.form.boolean("DryRun") {
		return nil, dryRunError()
	}
	for _, do := range apply {
		do()
	}
	return struct {
		Return bool `xml:"return"`
	}{true}, nil
}

// tagger returns the function that tags a resource, or why it cannot be tagged: it is not visible, or would have more
// than 50 tags.
func (c *Cloud) tagger(id string, tags map[string]string, seen, now time.Time) (func(), error) {
	full := refuse("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
	for _, t := range c.templates {
		if t.id == id {
			all := maps.Clone(t.tags)
			if all == nil {
				all = map[string]string{}
			}
			maps.Copy(all, tags)
			return func() { t.tags = all }, nil
		}
	}
	if s, g := c.subnet(id), c.group(id); s != nil || g != nil {
		return func() {
			if s != nil {
				maps.Copy(s.tags, tags)
			} else {
				maps.Copy(g.tags, tags)
			}
		}, nil
	}
	instances, err := c.visible([]string{id}, seen)
	if err != nil {
		return nil, err
	}
	i := instances[0]
	all := i.tagsAt(now)
	maps.Copy(all, tags)
	maps.DeleteFunc(all, func(key, _ string) bool { return len(key) > 4 && key[:4] == "aws:" })
	if len(all) > 50 {
		return nil, full
	}
	return func() {
		for _, key := range sortedKeys(tags) {
			i.tagged = append(i.tagged, tagging{now, key, tags[key]})
		}
	}, nil
}
