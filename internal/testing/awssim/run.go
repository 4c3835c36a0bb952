package awssim

import (
	"maps"
	"time"
)

// runInstances implements ec2:RunInstances: parameters of the request take precedence over those of the launch template.
// Without DryRun it launches up to MaxCount instances, at least one; a higher MinCount, of which EC2 would launch all or
// none, is not simulated. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html
func runInstances(c *Cloud, r *request, now time.Time) (any, error) {
	return c.once(r, func() (any, error) {
		o, most, err := c.parseRun(r.form, now)
		switch {
		case err != nil:
			return nil, err
		case c.policyDenies(o):
			return nil, c.deniedError("ec2", "RunInstances")
		case o.permanent != nil:
			return nil, o.permanent
		case r.form.boolean("DryRun"):
			return nil, dryRunError()
		}
		request := &fleetRequest{token: r.form.str("ClientToken"), lifecycle: o.pool.capacity, capacity: o.pool.capacity}
		ids, err := c.launchMany(o, request, most, now)
		if len(ids) == 0 {
			return nil, err
		}
		out := xmlReservation{OwnerID: c.opts.AccountID}
		for _, id := range ids {
			i := c.instances[id]
			out.ID = c.instances[ids[0]].reservation
			out.Instances = append(out.Instances, c.instanceXML(i, now))
		}
		return out, nil
	})
}

// parseRun returns how the instances are launched, and how many at most.
func (c *Cloud) parseRun(form *node, now time.Time) (*override, int, error) {
	o := &override{}
	if said := form.at("LaunchTemplate"); said != nil {
		if err := said.only("LaunchTemplate", "LaunchTemplateId", "LaunchTemplateName", "Version"); err != nil {
			return nil, 0, err
		}
		template, err := c.findTemplate(said.str("LaunchTemplateId"), said.str("LaunchTemplateName"), c.seenAt(now))
		if err != nil {
			return nil, 0, err
		}
		if err := template.version(said.str("Version")); err != nil {
			return nil, 0, err
		}
		both := maps.Clone(template.data.children)
		maps.Copy(both, form.children)
		o.template, form = template, &node{children: both}
	}
	spec, err := parseInstance(form)
	if err != nil {
		return nil, 0, err
	}
	o.spec, o.name, o.subnet, o.zone = spec, spec.instanceType, spec.subnet, spec.zone
	defaultTo(&o.name, "m1.small") // EC2's default
	var counts [2]int
	for k, path := range []string{"MinCount", "MaxCount"} {
		if counts[k], err = form.integer(path, 0); err != nil || counts[k] < 1 {
			return nil, 0, refuse("MissingParameter", "The request must contain the parameter %s, of at least 1", path)
		}
	}
	if counts[0] > counts[1] {
		return nil, 0, refuse("InvalidParameterValue", "MinCount %d is more than MaxCount %d", counts[0], counts[1])
	}
	if counts[0] > 1 && !form.boolean("DryRun") {
		return nil, 0, refuse("UnsupportedOperation", "RunInstances is simulated with a MinCount of 1 only")
	}
	capacity := onDemand
	if spec.market == spot {
		capacity = spot
	}
	c.resolve(o, capacity, c.seenAt(now))
	return o, counts[1], nil
}
