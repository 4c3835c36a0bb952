package awssim

import (
	"fmt"
	"hash/fnv"
	"strings"
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
	Since  string `xml:"ebs>attachTime"`
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
	Attach string     `xml:"attachment>attachmentId"`
	Since  string     `xml:"attachment>attachTime"`
	State  string     `xml:"attachment>status"`

	OwnerID     string       `xml:"ownerId"`
	MAC         string       `xml:"macAddress"`
	Check       bool         `xml:"sourceDestCheck"`
	DNS         string       `xml:"privateDnsName,omitempty"`
	Description string       `xml:"description"`
	Addresses   []xmlAddress `xml:"privateIpAddressesSet>item,omitempty"`
	Prefixes4   []xmlPrefix4 `xml:"ipv4PrefixSet>item,omitempty"`
	IPv6        []xmlIPv6    `xml:"ipv6AddressesSet>item,omitempty"`
	Prefixes6   []xmlPrefix6 `xml:"ipv6PrefixSet>item,omitempty"`
}

// addresses invents the prefixes and IPv6 addresses of an interface.
func (x *xmlInterface) addresses(e attached) {
	for k := range e.spec.prefixes {
		x.Prefixes4 = append(x.Prefixes4, xmlPrefix4{fmt.Sprintf("10.2.%d.%d/28", k/16, k%16*16)})
	}
	for k := range e.spec.ipv6 {
		x.IPv6 = append(x.IPv6, xmlIPv6{fmt.Sprintf("2001:db8::%x", k+1), k == 0 && e.spec.primaryIPv6})
	}
	for k := range e.spec.prefixes6 {
		x.Prefixes6 = append(x.Prefixes6, xmlPrefix6{fmt.Sprintf("2001:db8:0:0:%x::/80", k+1)})
	}
}

type xmlPrefix4 struct {
	Prefix string `xml:"ipv4Prefix"`
}

type xmlPrefix6 struct {
	Prefix string `xml:"ipv6Prefix"`
}

type xmlIPv6 struct {
	Address string `xml:"ipv6Address"`
	Primary bool   `xml:"isPrimaryIpv6"`
}

type xmlAddress struct {
	IP      string `xml:"privateIpAddress"`
	DNS     string `xml:"privateDnsName"`
	Primary bool   `xml:"primary"`
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
	ReasonText   *string        `xml:"stateReason>message"`
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
	ProfileID    *string        `xml:"iamInstanceProfile>id"`
	Cores        int            `xml:"cpuOptions>coreCount"`
	Threads      int            `xml:"cpuOptions>threadsPerCore"`
	Nested       string         `xml:"cpuOptions>nestedVirtualization,omitempty"`
	Reservation  string         `xml:"capacityReservationId,omitempty"`
	Preference   string         `xml:"capacityReservationSpecification>capacityReservationPreference"`
	Target       string         `xml:"capacityReservationSpecification>capacityReservationTarget>capacityReservationId,omitempty"`
	Enclave      bool           `xml:"enclaveOptions>enabled"`
	Recovery     string         `xml:"maintenanceOptions>autoRecovery"`
	Metadata     xmlMetadata    `xml:"metadataOptions"`

	Index       int    `xml:"amiLaunchIndex"`
	ClientToken string `xml:"clientToken"`
	PublicDNS   string `xml:"dnsName"`
	EBSOptimal  bool   `xml:"ebsOptimized"`
	ENA         bool   `xml:"enaSupport"`
	Hibernation bool   `xml:"hibernationOptions>configured"`
	OS          string `xml:"platform,omitempty"`
	Platform    string `xml:"platformDetails"`
	Operation   string `xml:"usageOperation"`
	OperatedAt  string `xml:"usageOperationUpdateTime"`
	Check       *bool  `xml:"sourceDestCheck"`
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

func (c *Cloud) instanceXML(i *instance, seen time.Time) xmlInstance {
	state, t, m := i.stateAt(seen), c.types[i.Type], i.spec.metadata
	out := xmlInstance{ID: i.ID, Image: i.ImageID, State: xmlState{stateCodes[state], state}, Type: i.Type,
		Launched: iso(i.Launched), Zone: i.Zone, ZoneID: i.ZoneID,
		Tenancy: i.spec.tenancy, Partition: i.Partition,
		Monitoring: "disabled", Architecture: i.Architecture,
		RootType: "ebs", Root: i.volumes[0].name, Virtual: "hvm", SpotRequest: i.spotRequest, Tags: ec2Tags(i.tagsAt(seen)), Hypervisor: "xen",
		Cores: t.Cores, Threads: max(t.VCPU/max(t.Cores, 1), 1), Nested: i.spec.nested, Reservation: i.capacity,
		Preference: i.spec.reservationPreference, Target: i.spec.reservation,
		Enclave: i.spec.enclave, Metadata: xmlMetadata{"applied", m["HttpTokens"], m["HttpPutResponseHopLimit"],
			m["HttpEndpoint"], m["HttpProtocolIpv6"], m["InstanceMetadataTags"]}}
	out.ClientToken, out.ENA, out.Platform, out.Operation, out.OperatedAt = i.token, t.ENA, "Linux/UNIX", "RunInstances", iso(i.Launched)
	if windows(i.ImageFamily) {
		out.OS, out.Platform, out.Operation = "windows", "Windows", "RunInstances:0002"
	}
	out.EBSOptimal = t.EBSOpt == "default"
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
		id := c.profileID(i)
		out.Profile, out.ProfileID = &arn, &id
	}
	if i.reason != "" && state != pending && state != running {
		text := i.reason
		if i.reason == "Client.UserInitiatedShutdown" {
			text += ": User initiated shutdown"
		}
		out.Reason, out.ReasonCode, out.ReasonText = i.reason, &i.reason, &text
	}
	if state == terminated { // EC2 omits these fields for a terminated instance
		return out
	}
	check := true
	out.Check = &check
	out.PrivateDNS, out.PrivateIP, out.Subnet, out.VPC, out.Groups = i.PrivateDNSName, i.PrivateIP, i.SubnetID,
		i.subnet.vpc, c.groupsXML(i.SecurityGroups)
	for _, v := range i.volumes {
		out.Volumes = append(out.Volumes, xmlVolume{v.name, v.id, "attached", v.delete, iso(i.Launched)})
	}
	for _, e := range i.enis {
		eni := xmlInterface{ID: e.id, Subnet: i.SubnetID, VPC: i.subnet.vpc, Kind: e.spec.kind, Status: "in-use",
			Groups: c.groupsXML(e.spec.groups), Device: e.spec.device, Card: e.spec.card, Delete: e.delete,
			Attach: "eni-attach-" + e.id[len("eni-"):], Since: iso(i.Launched), State: "attached", OwnerID: c.opts.AccountID,
			MAC: macOf(e.id), Check: true, Description: e.spec.text}
		if e.index == 0 {
			eni.IP, eni.DNS = i.PrivateIP, i.PrivateDNSName
			eni.Addresses = []xmlAddress{{i.PrivateIP, i.PrivateDNSName, true}}
		}
		eni.addresses(e)
		out.Interfaces = append(out.Interfaces, eni)
	}
	return out
}

// macOf returns a locally administered address that is made of an interface's ID.
func macOf(id string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	sum := h.Sum(nil)
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}

func windows(family string) bool { return strings.HasPrefix(family, "windows") }

func (c *Cloud) groupsXML(ids []string) []xmlGroup {
	var groups []xmlGroup
	for _, id := range ids {
		groups = append(groups, xmlGroup{id, c.group(id).name})
	}
	return groups
}
