package awssim

import (
	"slices"
	"strconv"
	"time"
)

// describeAvailabilityZones implements ec2:DescribeAvailabilityZones.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
func describeAvailabilityZones(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
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
	zones, err = keep(filters, zones, func(z *zone) facts {
		return func(name string) ([]string, bool) {
			return field(name, map[string]string{"zone-name": z.name, "zone-id": z.id, "zone-type": "availability-zone", "state": "available",
				"region-name": c.opts.Region, "opt-in-status": "opt-in-not-required", "group-name": c.opts.Region})
		}
	})
	type item struct {
		ZoneName string `xml:"zoneName"`
		State    string `xml:"zoneState"`
		Region   string `xml:"regionName"`
		ZoneID   string `xml:"zoneId"`
		Group    string `xml:"groupName"`
		OptIn    string `xml:"optInStatus"`
		Type     string `xml:"zoneType"`
	}
	var out struct {
		Items []item `xml:"availabilityZoneInfo>item,omitempty"`
	}
	for _, z := range zones {
		out.Items = append(out.Items, item{z.name, "available", c.opts.Region, z.id, c.opts.Region, "opt-in-not-required", "availability-zone"})
	}
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
	if subnets, err = keep(filters, subnets, c.subnetFacts); err != nil {
		return nil, err
	}
	type item struct {
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
	}
	var out struct {
		Items []item `xml:"subnetSet>item,omitempty"`
		Next  string `xml:"nextToken,omitempty"`
	}
	subnets, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, subnets, func(s *subnet) string { return s.id })
	for _, s := range subnets {
		arn := "arn:aws:ec2:" + c.opts.Region + ":" + c.opts.AccountID + ":subnet/" + s.id
		out.Items = append(out.Items, item{ID: s.id, ARN: arn, State: "available", VPC: s.vpc, CIDR: s.prefix.String(), Free: s.free(),
			Zone: s.zone.name, ZoneID: s.zone.id, Public: s.public, OwnerID: c.opts.AccountID, Tags: ec2Tags(s.tags)})
	}
	return out, err
}

func (c *Cloud) subnetFacts(s *subnet) facts {
	return func(name string) ([]string, bool) {
		if values, ok := tagFacts(s.tags, name); ok {
			return values, true
		}
		return field(name, map[string]string{"subnet-id": s.id, "vpc-id": s.vpc, "availability-zone": s.zone.name,
			"availability-zone-id": s.zone.id, "state": "available", "cidr-block": s.prefix.String(), "owner-id": c.opts.AccountID,
			"available-ip-address-count": strconv.Itoa(s.free()), "map-public-ip-on-launch": strconv.FormatBool(s.public)})
	}
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
	groups, err = keep(filters, groups, func(g *securityGroup) facts {
		return func(name string) ([]string, bool) {
			if values, ok := tagFacts(g.tags, name); ok {
				return values, true
			}
			return field(name, map[string]string{"group-id": g.id, "group-name": g.name, "vpc-id": g.vpc,
				"owner-id": c.opts.AccountID, "description": g.name})
		}
	})
	if err != nil {
		return nil, err
	}
	type item struct {
		ID          string   `xml:"groupId"`
		Name        string   `xml:"groupName"`
		Description string   `xml:"groupDescription"`
		VPC         string   `xml:"vpcId"`
		OwnerID     string   `xml:"ownerId"`
		Tags        []ec2Tag `xml:"tagSet>item,omitempty"`
	}
	var out struct {
		Items []item `xml:"securityGroupInfo>item,omitempty"`
		Next  string `xml:"nextToken,omitempty"`
	}
	groups, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, groups, func(g *securityGroup) string { return g.id })
	for _, g := range groups {
		out.Items = append(out.Items, item{g.id, g.name, g.name, g.vpc, c.opts.AccountID, ec2Tags(g.tags)})
	}
	return out, err
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
	owners := r.form.strings("Owner")
	images = slices.DeleteFunc(images, func(i *image) bool {
		mine := i.owner == c.opts.AccountID
		hidden := !i.deprecated.IsZero() && !i.deprecated.After(now) && !r.form.boolean("IncludeDeprecated") && !mine
		owned := slices.ContainsFunc(owners, func(o string) bool {
			return o == i.owner || o == "amazon" && !mine || o == "self" && mine
		})
		return hidden || len(owners) > 0 && !owned
	})
	images, err = keep(filters, images, c.imageFacts)
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

func (c *Cloud) imageFacts(i *image) facts {
	return func(name string) ([]string, bool) {
		if values, ok := tagFacts(i.tags, name); ok {
			return values, true
		}
		alias := ""
		if i.owner == amazon {
			alias = "amazon"
		}
		return field(name, map[string]string{"image-id": i.id, "name": i.name, "architecture": i.arch, "state": "available",
			"owner-id": i.owner, "owner-alias": alias,
			"virtualization-type": "hvm", "root-device-type": "ebs", "creation-date": iso(i.created), "is-public": strconv.FormatBool(alias != "")})
	}
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
	Tags       []ec2Tag         `xml:"tagSet>item,omitempty"`
	Devices    []xmlImageDevice `xml:"blockDeviceMapping>item,omitempty"`
}

type xmlImageDevice struct {
	Name     string `xml:"deviceName"`
	Snapshot string `xml:"ebs>snapshotId"`
	Size     int    `xml:"ebs>volumeSize"`
	Type     string `xml:"ebs>volumeType"`
	Delete   bool   `xml:"ebs>deleteOnTermination"`
}

func (c *Cloud) xmlImage(i *image) xmlImage {
	out := xmlImage{ID: i.id, Location: i.owner + "/" + i.name, State: "available", OwnerID: i.owner,
		Created: iso(i.created), Deprecated: iso(i.deprecated),
		Arch: i.arch, Type: "machine", Name: i.name, RootType: "ebs", Root: i.devices[0].name, Virtual: "hvm", Hypervisor: "xen", ENA: true,
		Platform: "Linux/UNIX", Tags: ec2Tags(i.tags)}
	if i.owner == amazon {
		out.Alias, out.Public = "amazon", true
	}
	for _, d := range i.devices {
		out.Devices = append(out.Devices, xmlImageDevice{d.name, d.snapshot, d.gib, "gp3", true})
	}
	return out
}
