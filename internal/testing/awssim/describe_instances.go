package awssim

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

type xmlState struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type xmlGroup struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type xmlVolume struct {
	Device string `xml:"deviceName"`
	ID     string `xml:"ebs>volumeId"`
	Status string `xml:"ebs>status"`
	Delete bool   `xml:"ebs>deleteOnTermination"`
}

type xmlInterface struct {
	ID     string     `xml:"networkInterfaceId"`
	Subnet string     `xml:"subnetId"`
	VPC    string     `xml:"vpcId"`
	Kind   string     `xml:"interfaceType"`
	Status string     `xml:"status"`
	IP     string     `xml:"privateIpAddress,omitempty"`
	Groups []xmlGroup `xml:"groupSet>item,omitempty"`
	Device int        `xml:"attachment>deviceIndex"`
	Card   int        `xml:"attachment>networkCardIndex"`
	Delete bool       `xml:"attachment>deleteOnTermination"`
}

// xmlInstance is EC2's Instance.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
type xmlInstance struct {
	ID           string         `xml:"instanceId"`
	Image        string         `xml:"imageId"`
	State        xmlState       `xml:"instanceState"`
	PrivateDNS   string         `xml:"privateDnsName"`
	PrivateIP    string         `xml:"privateIpAddress,omitempty"`
	Reason       string         `xml:"reason"`
	ReasonCode   *string        `xml:"stateReason>code"`
	Type         string         `xml:"instanceType"`
	Launched     string         `xml:"launchTime"`
	Zone         string         `xml:"placement>availabilityZone"`
	ZoneID       string         `xml:"placement>availabilityZoneId"`
	Tenancy      string         `xml:"placement>tenancy"`
	GroupID      string         `xml:"placement>groupId,omitempty"`
	Group        string         `xml:"placement>groupName,omitempty"`
	Partition    int            `xml:"placement>partitionNumber,omitempty"`
	Monitoring   string         `xml:"monitoring>state"`
	Subnet       string         `xml:"subnetId,omitempty"`
	VPC          string         `xml:"vpcId,omitempty"`
	Architecture string         `xml:"architecture"`
	RootType     string         `xml:"rootDeviceType"`
	Root         string         `xml:"rootDeviceName"`
	Volumes      []xmlVolume    `xml:"blockDeviceMapping>item,omitempty"`
	Virtual      string         `xml:"virtualizationType"`
	Lifecycle    string         `xml:"instanceLifecycle,omitempty"`
	SpotRequest  string         `xml:"spotInstanceRequestId,omitempty"`
	Tags         []ec2Tag       `xml:"tagSet>item,omitempty"`
	Groups       []xmlGroup     `xml:"groupSet>item,omitempty"`
	Hypervisor   string         `xml:"hypervisor"`
	Interfaces   []xmlInterface `xml:"networkInterfaceSet>item,omitempty"`
	Profile      *string        `xml:"iamInstanceProfile>arn"`
	Cores        int            `xml:"cpuOptions>coreCount"`
	Threads      int            `xml:"cpuOptions>threadsPerCore"`
	Nested       string         `xml:"cpuOptions>nestedVirtualization,omitempty"`
	Reservation  string         `xml:"capacityReservationId,omitempty"`
	Preference   string         `xml:"capacityReservationSpecification>capacityReservationPreference"`
	Enclave      bool           `xml:"enclaveOptions>enabled"`
	Recovery     string         `xml:"maintenanceOptions>autoRecovery"`
	Metadata     xmlMetadata    `xml:"metadataOptions"`
}

type xmlMetadata struct {
	State    string `xml:"state"`
	Tokens   string `xml:"httpTokens"`
	Hops     string `xml:"httpPutResponseHopLimit"`
	Endpoint string `xml:"httpEndpoint"`
	IPv6     string `xml:"httpProtocolIpv6"`
	Tags     string `xml:"instanceMetadataTags"`
}

type xmlReservation struct {
	ID        string        `xml:"reservationId"`
	OwnerID   string        `xml:"ownerId"`
	Instances []xmlInstance `xml:"instancesSet>item,omitempty"`
}

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
	instances, err = keep(filters, instances, func(i *instance) facts { return c.instanceFacts(i, seen) })
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlReservation `xml:"reservationSet>item,omitempty"`
		Next  string           `xml:"nextToken,omitempty"`
	}
	instances, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, instances, func(i *instance) string { return i.ID })
	for _, i := range instances {
		out.Items = append(out.Items, xmlReservation{i.reservation, c.opts.AccountID, []xmlInstance{c.instanceXML(i, seen)}})
	}
	return out, err
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

func (c *Cloud) instanceFacts(i *instance, seen time.Time) facts {
	return func(name string) ([]string, bool) {
		if values, ok := tagFacts(i.tagsAt(seen), name); ok {
			return values, true
		}
		state, lifecycle := i.stateAt(seen), "normal"
		if i.CapacityType == spot {
			lifecycle = spot
		}
		if name == "instance-lifecycle" && lifecycle == "normal" {
			return nil, true
		}
		switch {
		case name == "placement-group-name" && i.placement != nil:
			return []string{i.placement.Name}, true
		case name == "placement-partition-number" && i.Partition != 0:
			return []string{strconv.Itoa(i.Partition)}, true
		case name == "placement-group-name" || name == "placement-partition-number":
			return nil, true
		}
		if name == "instance.group-id" || name == "group-id" {
			return i.SecurityGroups, true
		}
		return field(name, map[string]string{"instance-id": i.ID, "instance-type": i.Type, "instance-state-name": state,
			"instance-state-code": strconv.Itoa(stateCodes[state]),
			"availability-zone":   i.Zone, "availability-zone-id": i.ZoneID, "subnet-id": i.SubnetID, "vpc-id": i.subnet.vpc,
			"image-id": i.ImageID, "instance-lifecycle": lifecycle,
			"private-dns-name": i.PrivateDNSName, "private-ip-address": i.PrivateIP, "reservation-id": i.reservation, "architecture": i.Architecture,
			"spot-instance-request-id": i.spotRequest, "iam-instance-profile.arn": c.profileARN(i), "launch-time": iso(i.Launched)})
	}
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

func (c *Cloud) instanceXML(i *instance, seen time.Time) xmlInstance {
	state, t, m := i.stateAt(seen), c.types[i.Type], i.spec.metadata
	out := xmlInstance{ID: i.ID, Image: i.ImageID, State: xmlState{stateCodes[state], state}, Type: i.Type,
		Launched: iso(i.Launched), Zone: i.Zone, ZoneID: i.ZoneID,
		Tenancy: i.spec.tenancy, Partition: i.Partition,
		Monitoring: "disabled", Architecture: i.Architecture,
		RootType: "ebs", Root: i.volumes[0].name, Virtual: "hvm", SpotRequest: i.spotRequest, Tags: ec2Tags(i.tagsAt(seen)), Hypervisor: "xen",
		Cores: t.Cores, Threads: max(t.VCPU/max(t.Cores, 1), 1), Nested: i.spec.nested, Reservation: i.capacity,
		Preference: i.spec.reservationPreference,
		Enclave:    i.spec.enclave, Metadata: xmlMetadata{"applied", m["HttpTokens"], m["HttpPutResponseHopLimit"],
			m["HttpEndpoint"], m["HttpProtocolIpv6"], m["InstanceMetadataTags"]}}
	if i.placement != nil {
		out.GroupID, out.Group = i.placement.ID, i.placement.Name
	}
	out.Recovery = i.spec.recovery
	defaultTo(&out.Recovery, "default")
	defaultTo(&out.Tenancy, "default")
	defaultTo(&out.Preference, "open")
	if i.CapacityType == spot {
		out.Lifecycle = spot
	} else if i.spec.market != "" && i.spec.market != spot {
		out.Lifecycle = i.spec.market
	}
	if i.spec.monitoring {
		out.Monitoring = "enabled"
	}
	if arn := c.profileARN(i); arn != "" {
		out.Profile = &arn
	}
	if i.reason != "" && state != pending && state != running {
		out.Reason, out.ReasonCode = i.reason, &i.reason
	}
	if state == terminated { // EC2 omits these fields for a terminated instance
		return out
	}
	out.PrivateDNS, out.PrivateIP, out.Subnet, out.VPC, out.Groups = i.PrivateDNSName, i.PrivateIP, i.SubnetID,
		i.subnet.vpc, c.groupsXML(i.SecurityGroups)
	for _, v := range i.volumes {
		out.Volumes = append(out.Volumes, xmlVolume{v.name, v.id, "attached", v.delete})
	}
	for _, e := range i.enis {
		eni := xmlInterface{ID: e.id, Subnet: i.SubnetID, VPC: i.subnet.vpc, Kind: e.spec.kind, Status: "in-use",
			Groups: c.groupsXML(e.spec.groups), Device: e.spec.device, Card: e.spec.card, Delete: e.delete}
		if e.index == 0 {
			eni.IP = i.PrivateIP
		}
		out.Interfaces = append(out.Interfaces, eni)
	}
	return out
}

func (c *Cloud) groupsXML(ids []string) []xmlGroup {
	var groups []xmlGroup
	for _, id := range ids {
		groups = append(groups, xmlGroup{id, c.group(id).name})
	}
	return groups
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

// createTags implements ec2:CreateTags for instances and launch templates: all resources or none.
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
