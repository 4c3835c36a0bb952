package awssim

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// launchSpec describes an instance in a launch template or in RunInstances.
type launchSpec struct {
	image, instanceType   string
	userData              []byte
	profileName           string
	profileARN            string
	groups                []string
	interfaces            []interfaceSpec
	devices               []deviceSpec
	metadata              map[string]string
	monitoring            bool
	tenancy               string
	zone                  string
	placementID           string
	placementName         string
	partition             int
	nested                string
	enclave               bool
	market                string
	recovery              string
	reservationPreference string
	reservation           string
	subnet                string
	tags                  map[string]map[string]string
}

// interfaceSpec describes a network interface.
type interfaceSpec struct {
	card, device int
	kind         string // interface, efa, efa-only
	groups       []string
	subnet       string
	public       string // true, false, or empty for the subnet's default
	prefixes     int
	ipv6         int
	prefixes6    int
	primaryIPv6  bool
	tracking     map[string]int
	text         string // description
	keep         bool   // after the instance has ended
}

// deviceSpec describes a volume.
type deviceSpec struct {
	name, kind, snapshot, key string
	gib, iops, throughput     int
	rate                      int
	encrypted, delete         bool
}

// specKeys are the members of RequestLaunchTemplateData that are simulated. No others are accepted.
var specKeys = []string{"BlockDeviceMapping", "CapacityReservationSpecification", "CpuOptions", "EnclaveOptions",
	"IamInstanceProfile", "ImageId", "InstanceMarketOptions",
	"InstanceType", "MaintenanceOptions", "MetadataOptions", "Monitoring", "NetworkInterface", "Placement", "SecurityGroupId",
	"TagSpecification", "UserData"}

// parseSpec parses launch template data.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html
func parseSpec(n *node) (*launchSpec, error) {
	if err := n.only("LaunchTemplateData", specKeys...); err != nil {
		return nil, err
	}
	return parseInstance(n)
}

// partKeys are the members of these members, except for those with their own function.
var partKeys = map[string][]string{
	"CapacityReservationSpecification":                           {"CapacityReservationPreference", "CapacityReservationTarget"},
	"CapacityReservationSpecification.CapacityReservationTarget": {"CapacityReservationId"},
	"CpuOptions":            {"NestedVirtualization"},
	"EnclaveOptions":        {"Enabled"},
	"IamInstanceProfile":    {"Arn", "Name"},
	"InstanceMarketOptions": {"MarketType"},
	"MaintenanceOptions":    {"AutoRecovery"},
	"Monitoring":            {"Enabled"},
	"Placement":             {"AvailabilityZone", "GroupId", "GroupName", "PartitionNumber", "Tenancy"},
}

func parseInstance(n *node) (*launchSpec, error) {
	for _, part := range sortedKeys(partKeys) {
		if err := n.at(part).only(part, partKeys[part]...); err != nil {
			return nil, err
		}
	}
	s := &launchSpec{
		image: n.str("ImageId"), instanceType: n.str("InstanceType"), profileName: n.str("IamInstanceProfile.Name"),
		profileARN: n.str("IamInstanceProfile.Arn"),
		groups:     n.strings("SecurityGroupId"), monitoring: n.boolean("Monitoring.Enabled"), tenancy: n.str("Placement.Tenancy"),
		zone:        n.str("Placement.AvailabilityZone"),
		placementID: n.str("Placement.GroupId"), placementName: n.str("Placement.GroupName"),
		nested: n.str("CpuOptions.NestedVirtualization"), enclave: n.boolean("EnclaveOptions.Enabled"),
		recovery:              n.str("MaintenanceOptions.AutoRecovery"),
		market:                n.str("InstanceMarketOptions.MarketType"),
		reservationPreference: n.str("CapacityReservationSpecification.CapacityReservationPreference"),
		reservation:           n.str("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"),
		subnet:                n.str("SubnetId"),
	}
	var err error
	if s.userData, err = decodeUserData(n.str("UserData")); err != nil {
		return nil, err
	}
	if s.partition, err = n.integer("Placement.PartitionNumber", 0); err != nil {
		return nil, err
	}
	if err := s.parseMetadata(n.at("MetadataOptions")); err != nil {
		return nil, err
	}
	for _, check := range []struct {
		path   string
		values []string
	}{
		{"Placement.Tenancy", []string{"default", "dedicated", "host"}},
		{"CpuOptions.NestedVirtualization", []string{"enabled", "disabled"}},
		{"MaintenanceOptions.AutoRecovery", []string{"default", "disabled"}},
		{"InstanceMarketOptions.MarketType", []string{spot, marketBlock, marketInterruptible}},
		{"CapacityReservationSpecification.CapacityReservationPreference", []string{preferOpen, preferNone, preferOnly}},
	} {
		if err := n.oneOf(check.path, check.values...); err != nil {
			return nil, err
		}
	}
	if err := s.parseInterfaces(n); err != nil {
		return nil, err
	}
	if err := s.parseDevices(n); err != nil {
		return nil, err
	}
	s.tags, err = tagSpecs(n, "instance", "volume", "network-interface", "spot-instances-request")
	return s, err
}

// parseMetadata parses the metadata options, with AWS's defaults.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateInstanceMetadataOptionsRequest.html
func (s *launchSpec) parseMetadata(n *node) error {
	s.metadata = map[string]string{"HttpEndpoint": "enabled", "HttpProtocolIpv6": "disabled", "HttpPutResponseHopLimit": "1",
		"HttpTokens": "optional", "InstanceMetadataTags": "disabled"}
	if n == nil {
		return nil
	}
	if err := n.only("MetadataOptions", slices.Collect(maps.Keys(s.metadata))...); err != nil {
		return err
	}
	for name, values := range map[string][]string{"HttpEndpoint": {"enabled", "disabled"}, "HttpProtocolIpv6": {"enabled", "disabled"},
		"HttpTokens": {"required", "optional"}, "InstanceMetadataTags": {"enabled", "disabled"}} {
		if err := n.oneOf(name, values...); err != nil {
			return err
		}
	}
	if hops, err := n.integer("HttpPutResponseHopLimit", 1); err != nil {
		return err
	} else if hops < 1 || hops > 64 {
		return refuse("InvalidParameterValue", "Value (%d) for parameter HttpPutResponseHopLimit is invalid. It must be 1 to 64.", hops)
	}
	for name := range s.metadata {
		if n.has(name) {
			s.metadata[name] = n.str(name)
		}
	}
	return nil
}

// parseInterfaces parses network interfaces.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html
func (s *launchSpec) parseInterfaces(n *node) error {
	taken := map[[2]int]bool{}
	for _, item := range n.items("NetworkInterface") {
		if err := item.only("NetworkInterface", "AssociatePublicIpAddress", "ConnectionTrackingSpecification",
			"DeleteOnTermination", "Description", "DeviceIndex", "SecurityGroupId",
			"InterfaceType", "Ipv4PrefixCount", "Ipv6AddressCount", "Ipv6PrefixCount", "NetworkCardIndex", "PrimaryIpv6", "SubnetId"); err != nil {
			return err
		}
		i := interfaceSpec{kind: item.str("InterfaceType"), groups: item.strings("SecurityGroupId"), subnet: item.str("SubnetId"),
			public: item.str("AssociatePublicIpAddress"), text: item.str("Description"),
			keep:        item.str("DeleteOnTermination") == "false",
			primaryIPv6: item.boolean("PrimaryIpv6"), tracking: map[string]int{}}
		defaultTo(&i.kind, "interface")
		if !slices.Contains([]string{"interface", "efa", "efa-only"}, i.kind) {
			return refuse("InvalidParameterValue", "Value (%s) for parameter InterfaceType is invalid. Valid values: interface, efa, efa-only",
				i.kind)
		}
		for path, number := range map[string]*int{"NetworkCardIndex": &i.card, "DeviceIndex": &i.device,
			"Ipv4PrefixCount": &i.prefixes, "Ipv6AddressCount": &i.ipv6, "Ipv6PrefixCount": &i.prefixes6} {
			var err error
			if *number, err = item.integer(path, 0); err != nil {
				return err
			}
		}
		if err := i.parseTracking(item.at("ConnectionTrackingSpecification")); err != nil {
			return err
		}
		if place := [2]int{i.card, i.device}; taken[place] {
			return refuse("InvalidParameterValue", "Each network interface requires a unique device index. Device index %d of network card %d is used twice.", i.device, i.card)
		} else {
			taken[place] = true
		}
		s.interfaces = append(s.interfaces, i)
	}
	if len(s.interfaces) > 0 && len(s.groups) > 0 {
		return refuse("InvalidParameterCombination",
			"Network interfaces and an instance-level security groups may not be specified on the same request")
	}
	if len(s.interfaces) > 0 && s.subnet != "" {
		return refuse("InvalidParameterCombination",
			"Network interfaces and an instance-level subnet ID may not be specified on the same request")
	}
	if len(s.interfaces) > 1 && slices.ContainsFunc(s.interfaces, func(i interfaceSpec) bool { return i.public == "true" }) {
		return refuse("InvalidParameterCombination",
			"The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces")
	}
	return nil
}

// parseTracking parses idle timeouts, in seconds.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ConnectionTrackingSpecificationRequest.html
func (i *interfaceSpec) parseTracking(n *node) error {
	for name, bounds := range map[string][2]int{"TcpEstablishedTimeout": {60, 432000}, "UdpStreamTimeout": {60, 180}, "UdpTimeout": {30, 60}} {
		if n.has(name) {
			v, err := n.integer(name, 0)
			if err != nil || v < bounds[0] || v > bounds[1] {
				return refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid. It must be %d to %d.",
					n.str(name), name, bounds[0], bounds[1])
			}
			i.tracking[name] = v
		}
	}
	return nil
}

// volumeKinds are the volume types with their maximum size in GiB.
// https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html
var volumeKinds = map[string]int{"standard": 1024, "gp2": 16384, "gp3": 65536, "io1": 16384, "io2": 65536, "st1": 16384, "sc1": 16384}

// parseDevices parses block device mappings.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateEbsBlockDeviceRequest.html
func (s *launchSpec) parseDevices(n *node) error {
	for _, item := range n.items("BlockDeviceMapping") {
		ebs := item.at("Ebs")
		if err := item.only("BlockDeviceMapping", "DeviceName", "Ebs"); err != nil {
			return err
		}
		if err := ebs.only("Ebs", "DeleteOnTermination", "Encrypted", "Iops", "KmsKeyId", "SnapshotId", "Throughput",
			"VolumeInitializationRate", "VolumeSize", "VolumeType"); err != nil {
			return err
		}
		d := deviceSpec{name: item.str("DeviceName"), kind: ebs.str("VolumeType"), snapshot: ebs.str("SnapshotId"), key: ebs.str("KmsKeyId"),
			encrypted: ebs.boolean("Encrypted"), delete: !ebs.has("DeleteOnTermination") || ebs.boolean("DeleteOnTermination")}
		for path, number := range map[string]*int{"VolumeSize": &d.gib, "Iops": &d.iops, "Throughput": &d.throughput,
			"VolumeInitializationRate": &d.rate} {
			var err error
			if *number, err = ebs.integer(path, 0); err != nil {
				return err
			}
		}
		if err := d.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(s.devices, func(o deviceSpec) bool { return o.name == d.name }) {
			return refuse("InvalidBlockDeviceMapping", "The device '%s' is used in more than one block-device mapping", d.name)
		}
		s.devices = append(s.devices, d)
	}
	return nil
}

func (d *deviceSpec) check() error {
	defaultTo(&d.kind, "gp3")
	most, ok := volumeKinds[d.kind]
	switch {
	case d.name == "":
		return refuse("MissingParameter", "The request must contain the parameter deviceName")
	case !ok:
		return refuse("InvalidParameterValue", "Value (%s) for parameter volumeType is invalid.", d.kind)
	case d.gib < 0 || d.gib > most:
		return refuse("InvalidParameterValue", "Volume of %dGiB is too large for volume type %s; maximum is %dGiB.", d.gib, d.kind, most)
	case d.throughput != 0 && d.kind != "gp3":
		return refuse("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", d.kind)
	case d.throughput != 0 && (d.throughput < 125 || d.throughput > 2000):
		return refuse("InvalidParameterValue", "Throughput %d is out of range; it must be 125 to 2000 MiB/s.", d.throughput)
	case d.iops != 0 && !slices.Contains([]string{"gp3", "io1", "io2"}, d.kind):
		return refuse("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", d.kind)
	case d.iops == 0 && (d.kind == "io1" || d.kind == "io2"):
		return refuse("MissingParameter", "The parameter iops must be specified for %s volumes.", d.kind)
	case d.kind == "gp3" && d.iops != 0 && (d.iops < 3000 || d.iops > 80000):
		return refuse("InvalidParameterValue", "Iops %d is out of range for gp3; it must be 3000 to 80000.", d.iops)
	case d.key != "" && !d.encrypted:
		return refuse("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
	case d.rate != 0 && (d.rate < 100 || d.rate > 300 || d.snapshot == ""):
		return refuse("InvalidParameterValue", "VolumeInitializationRate %s needs a snapshot and must be 100 to 300 MiB/s.", strconv.Itoa(d.rate))
	}
	return nil
}

// checkVolumes rejects volumes that are smaller than their snapshots.
func (s *launchSpec) checkVolumes(i *image) error {
	for _, d := range s.devices {
		k := slices.IndexFunc(i.devices, func(o imageDevice) bool { return o.name == d.name })
		switch {
		case k >= 0 && d.gib > 0 && d.gib < i.devices[k].gib:
			return refuse("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', expect size >= %dGB",
				d.gib, i.devices[k].snapshot, i.devices[k].gib)
		case k < 0 && d.gib == 0 && d.snapshot == "":
			return refuse("InvalidBlockDeviceMapping", "The device '%s' has neither a size nor a snapshot", d.name)
		}
	}
	return nil
}

// checkProfile rejects an instance profile that is not visible to EC2, or that has no role.
func (c *Cloud) checkProfile(s *launchSpec, seen time.Time) error {
	if s.profileName == "" && s.profileARN == "" {
		return nil
	}
	for _, p := range c.profiles {
		if (p.name == s.profileName || c.arn("instance-profile", p.path,
			p.name) == s.profileARN) && !p.created.After(seen) && p.role != nil && !p.roleAt.After(seen) {
			return nil
		}
	}
	if s.profileName == "" {
		return refuse("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN", s.profileARN)
	}
	return refuse("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", s.profileName)
}
