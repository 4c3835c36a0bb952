package awssim

import (
	"slices"
	"time"
)

// describeAvailabilityZones implements ec2:DescribeAvailabilityZones.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
func describeAvailabilityZones(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	r.form.at("AllAvailabilityZones") // shows zones that are not enabled, too; there are none
	unknown := func(name string) error {
		return refuse("InvalidParameterValue", "Invalid availability zone: [%s]", name)
	}
	zones, err := chosen(r.form.strings("ZoneName"), c.zones, func(z *zone) string { return z.name }, unknown)
	if err != nil {
		return nil, err
	}
	if zones, err = chosen(r.form.strings("ZoneId"), zones, func(z *zone) string { return z.id }, unknown); err != nil {
		return nil, err
	}
	type item struct {
		ZoneName string `xml:"zoneName"`
		State    string `xml:"zoneState"`
		Region   string `xml:"regionName"`
		ZoneID   string `xml:"zoneId"`
		Group    string `xml:"groupName"`
		OptIn    string `xml:"optInStatus"`
		Type     string `xml:"zoneType"`
		Border   string `xml:"networkBorderGroup"`
	}
	var out struct {
		Items []item `xml:"availabilityZoneInfo>item,omitempty"`
	}
	for _, z := range zones {
		region := c.opts.Region
		out.Items = append(out.Items, item{z.name, "available", region, z.id, region, "opt-in-not-required", "availability-zone", region})
	}
	out.Items, err = keep(filters, out.Items, func(i item) facts { return r.facts(nil, func() any { return i }) })
	return out, err
}

// field returns the filter values from a table of single values.
func field(name string, values map[string]string) ([]string, bool) {
	v, ok := values[name]
	return []string{v}, ok
}

// describeSubnets implements ec2:DescribeSubnets.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html
func describeSubnets(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	subnets, err := chosen(r.form.strings("SubnetId"), c.subnets, func(s *subnet) string { return s.id },
		notFound("subnet-", "InvalidSubnetID.Malformed", "InvalidSubnetID.NotFound", "subnet ID"))
	if err != nil {
		return nil, err
	}
	subnets, err = keep(filters, subnets, func(s *subnet) facts { return r.facts(s.tags, func() any { return c.xmlSubnet(s) }) })
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlSubnet `xml:"subnetSet>item,omitempty"`
		Next  string      `xml:"nextToken,omitempty"`
	}
	subnets, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, subnets, func(s *subnet) string { return s.id })
	for _, s := range subnets {
		out.Items = append(out.Items, c.xmlSubnet(s))
	}
	return out, err
}

type xmlSubnet struct {
	ID       string   `xml:"subnetId"`
	ARN      string   `xml:"subnetArn"`
	State    string   `xml:"state"`
	VPC      string   `xml:"vpcId"`
	CIDR     string   `xml:"cidrBlock"`
	Free     int      `xml:"availableIpAddressCount"`
	Zone     string   `xml:"availabilityZone"`
	ZoneID   string   `xml:"availabilityZoneId"`
	Public   bool     `xml:"mapPublicIpOnLaunch"`
	OwnerID  string   `xml:"ownerId"`
	Tags     []ec2Tag `xml:"tagSet>item,omitempty"`
	Default  bool     `xml:"defaultForAz"`
	Assign6  bool     `xml:"assignIpv6AddressOnCreation"`
	Customer bool     `xml:"mapCustomerOwnedIpOnLaunch"`
	DNS64    bool     `xml:"enableDns64"`
	Native6  bool     `xml:"ipv6Native"`
	Hostname string   `xml:"privateDnsNameOptionsOnLaunch>hostnameType"`
	Record4  bool     `xml:"privateDnsNameOptionsOnLaunch>enableResourceNameDnsARecord"`
	Record6  bool     `xml:"privateDnsNameOptionsOnLaunch>enableResourceNameDnsAAAARecord"`
}

func (c *Cloud) xmlSubnet(s *subnet) xmlSubnet {
	arn := "arn:aws:ec2:" + c.opts.Region + ":" + c.opts.AccountID + ":subnet/" + s.id
	return xmlSubnet{ID: s.id, ARN: arn, State: "available", VPC: s.vpc, CIDR: s.prefix.String(), Free: s.free(), Zone: s.zone.name,
		ZoneID: s.zone.id, Public: s.public, OwnerID: c.opts.AccountID, Tags: ec2Tags(s.tags), Hostname: "ip-name"}
}

// describeSecurityGroups implements ec2:DescribeSecurityGroups.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html
func describeSecurityGroups(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	groups, err := chosen(r.form.strings("GroupId"), c.groups, func(g *securityGroup) string { return g.id },
		notFound("sg-", "InvalidGroupId.Malformed", "InvalidGroup.NotFound", "security group"))
	if err != nil {
		return nil, err
	}
	groups, err = chosen(r.form.strings("GroupName"), groups, func(g *securityGroup) string { return g.name }, func(name string) error {
		return refuse("InvalidGroup.NotFound", "The security group '%s' does not exist in default VPC", name)
	})
	if err != nil {
		return nil, err
	}
	groups, err = keep(filters, groups, func(g *securityGroup) facts { return r.facts(g.tags, func() any { return c.xmlSecurityGroup(g) }) })
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlSecurityGroup `xml:"securityGroupInfo>item,omitempty"`
		Next  string             `xml:"nextToken,omitempty"`
	}
	groups, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, groups, func(g *securityGroup) string { return g.id })
	for _, g := range groups {
		out.Items = append(out.Items, c.xmlSecurityGroup(g))
	}
	return out, err
}

type xmlSecurityGroup struct {
	ID          string    `xml:"groupId"`
	Name        string    `xml:"groupName"`
	Description string    `xml:"groupDescription"`
	VPC         string    `xml:"vpcId"`
	OwnerID     string    `xml:"ownerId"`
	Tags        []ec2Tag  `xml:"tagSet>item,omitempty"`
	In          []xmlRule `xml:"ipPermissions>item,omitempty"`
	Out         []xmlRule `xml:"ipPermissionsEgress>item,omitempty"`
}

// xmlRule is a rule for all ports, which has no numbers of ports.
type xmlRule struct {
	Protocol string        `xml:"ipProtocol"`
	Groups   []xmlRuleFrom `xml:"groups>item,omitempty"`
	Ranges   []string      `xml:"ipRanges>item>cidrIp,omitempty"`
}

type xmlRuleFrom struct {
	ID    string `xml:"groupId"`
	Owner string `xml:"userId"`
}

// xmlSecurityGroup has the rules with which a VPC's default group is created: all from itself, and all to anywhere.
// https://docs.aws.amazon.com/vpc/latest/userguide/default-security-group.html
func (c *Cloud) xmlSecurityGroup(g *securityGroup) xmlSecurityGroup {
	return xmlSecurityGroup{g.id, g.name, g.name, g.vpc, c.opts.AccountID, ec2Tags(g.tags),
		[]xmlRule{{Protocol: "-1", Groups: []xmlRuleFrom{{g.id, c.opts.AccountID}}}},
		[]xmlRule{{Protocol: "-1", Ranges: []string{"0.0.0.0/0"}}}}
}

// describeImages implements ec2:DescribeImages. Deprecated images are shown only to their owner or if asked for.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html
func describeImages(c *Cloud, r *request, now time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	images, err := chosen(r.form.strings("ImageId"), c.images, func(i *image) string { return i.id }, imageNotFound)
	if err != nil {
		return nil, err
	}
	owners, users := r.form.strings("Owner"), r.form.strings("ExecutableBy")
	images = slices.DeleteFunc(images, func(i *image) bool {
		mine := i.owner == c.opts.AccountID
		public := i.owner == amazon
		hidden := !i.deprecated.IsZero() && !i.deprecated.After(now) && !r.form.boolean("IncludeDeprecated") && !mine
		owned := slices.ContainsFunc(owners, func(o string) bool {
			return o == i.owner || o == "amazon" && !mine || o == "self" && mine
		})
		launchable := slices.ContainsFunc(users, func(u string) bool { return u == "all" && public })
		return hidden || len(owners) > 0 && !owned || len(users) > 0 && !launchable
	})
	images, err = keep(filters, images, func(i *image) facts { return r.facts(i.tags, func() any { return c.xmlImage(i) }) })
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlImage `xml:"imagesSet>item,omitempty"`
		Next  string     `xml:"nextToken,omitempty"`
	}
	images, out.Next, err = cut(c, r.form, pages{1, 1000, 1000}, images, func(i *image) string { return i.id })
	for _, i := range images {
		out.Items = append(out.Items, c.xmlImage(i))
	}
	return out, err
}

// imageNotFound returns the error for an unknown image ID.
func imageNotFound(id string) error {
	if len(id) < 4 || id[:4] != "ami-" {
		return refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
	}
	return refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
}

type xmlImage struct {
	ID         string           `xml:"imageId"`
	Location   string           `xml:"imageLocation"`
	State      string           `xml:"imageState"`
	OwnerID    string           `xml:"imageOwnerId"`
	Alias      string           `xml:"imageOwnerAlias,omitempty"`
	Created    string           `xml:"creationDate"`
	Deprecated string           `xml:"deprecationTime,omitempty"`
	Public     bool             `xml:"isPublic"`
	Arch       string           `xml:"architecture"`
	Type       string           `xml:"imageType"`
	Name       string           `xml:"name"`
	RootType   string           `xml:"rootDeviceType"`
	Root       string           `xml:"rootDeviceName"`
	Virtual    string           `xml:"virtualizationType"`
	Hypervisor string           `xml:"hypervisor"`
	ENA        bool             `xml:"enaSupport"`
	Platform   string           `xml:"platformDetails"`
	OS         string           `xml:"platform,omitempty"`
	Operation  string           `xml:"usageOperation"`
	Text       string           `xml:"description,omitempty"`
	Tags       []ec2Tag         `xml:"tagSet>item,omitempty"`
	Devices    []xmlImageDevice `xml:"blockDeviceMapping>item,omitempty"`
}

type xmlImageDevice struct {
	Name     string `xml:"deviceName"`
	Snapshot string `xml:"ebs>snapshotId"`
	Size     int    `xml:"ebs>volumeSize"`
	Type     string `xml:"ebs>volumeType"`
	Delete   bool   `xml:"ebs>deleteOnTermination"`
	Secret   bool   `xml:"ebs>encrypted"`
}

func (c *Cloud) xmlImage(i *image) xmlImage {
	out := xmlImage{ID: i.id, Location: i.owner + "/" + i.name, State: "available", OwnerID: i.owner,
		Created: iso(i.created), Deprecated: iso(i.deprecated),
		Arch: i.arch, Type: "machine", Name: i.name, RootType: "ebs", Root: i.devices[0].name, Virtual: "hvm", Hypervisor: "xen", ENA: true,
		Platform: "Linux/UNIX", Tags: ec2Tags(i.tags)}
	out.Operation = "RunInstances"
	if windows(i.variant.family) {
		out.OS, out.Platform, out.Operation = "windows", "Windows", "RunInstances:0002"
	}
	if i.owner == amazon {
		out.Text = "EKS node image " + i.name
		out.Alias, out.Public = "amazon", true
	}
	for _, d := range i.devices {
		out.Devices = append(out.Devices, xmlImageDevice{d.name, d.snapshot, d.gib, "gp3", true, false})
	}
	return out
}
