package awssim

// reservationFilters are the filters of DescribeInstances, whose items are reservations of one instance each.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
var reservationFilters = filterTable{
	"owner-id": "ownerId", "requester-id": "requesterId", "reservation-id": "reservationId",
	"network-interface.attachment.instance-owner-id": "ownerId",
}.with(instanceFilters.with(interfaceFilters()).under("instancesSet>item")).with(tagFilters)

var instanceFilters = filterTable{
	"affinity": "placement>affinity", "architecture": "architecture", "availability-zone": "placement>availabilityZone",
	"availability-zone-id":                         "placement>availabilityZoneId",
	"block-device-mapping.attach-time":             "blockDeviceMapping>item>ebs>attachTime",
	"block-device-mapping.delete-on-termination":   "blockDeviceMapping>item>ebs>deleteOnTermination",
	"block-device-mapping.device-name":             "blockDeviceMapping>item>deviceName",
	"block-device-mapping.status":                  "blockDeviceMapping>item>ebs>status",
	"block-device-mapping.volume-id":               "blockDeviceMapping>item>ebs>volumeId",
	"boot-mode":                                    noFact,
	"capacity-reservation-id":                      "capacityReservationId",
	"client-token":                                 "clientToken",
	"current-instance-boot-mode":                   noFact,
	"dns-name":                                     "dnsName",
	"ebs-optimized":                                "ebsOptimized",
	"ena-support":                                  "enaSupport",
	"enclave-options.enabled":                      "enclaveOptions>enabled",
	"group-id":                                     "groupSet>item>groupId",
	"group-name":                                   "groupSet>item>groupName",
	"hibernation-options.configured":               "hibernationOptions>configured",
	"host-id":                                      "placement>hostId",
	"hypervisor":                                   "hypervisor",
	"iam-instance-profile.arn":                     "iamInstanceProfile>arn",
	"iam-instance-profile.id":                      "iamInstanceProfile>id",
	"image-id":                                     "imageId",
	"instance-id":                                  "instanceId",
	"instance-lifecycle":                           "instanceLifecycle",
	"instance-state-code":                          "instanceState>code",
	"instance-state-name":                          "instanceState>name",
	"instance-type":                                "instanceType",
	"instance.group-id":                            "groupSet>item>groupId",
	"instance.group-name":                          "groupSet>item>groupName",
	"ip-address":                                   "ipAddress",
	"ipv6-address":                                 "ipv6Address",
	"kernel-id":                                    "kernelId",
	"key-name":                                     "keyName",
	"launch-index":                                 "amiLaunchIndex",
	"launch-time":                                  "launchTime",
	"maintenance-options.auto-recovery":            "maintenanceOptions>autoRecovery",
	"metadata-options.http-endpoint":               "metadataOptions>httpEndpoint",
	"metadata-options.http-protocol-ipv4":          noFact,
	"metadata-options.http-protocol-ipv6":          "metadataOptions>httpProtocolIpv6",
	"metadata-options.http-put-response-hop-limit": "metadataOptions>httpPutResponseHopLimit",
	"metadata-options.http-tokens":                 "metadataOptions>httpTokens",
	"metadata-options.instance-metadata-tags":      "metadataOptions>instanceMetadataTags",
	"metadata-options.state":                       "metadataOptions>state",
	"monitoring-state":                             "monitoring>state",
	"operator.managed":                             "operator>managed",
	"operator.principal":                           "operator>principal",
	"outpost-arn":                                  "outpostArn",
	"placement-group-name":                         "placement>groupName",
	"placement-partition-number":                   "placement>partitionNumber",
	"platform":                                     "platform",
	"platform-details":                             "platformDetails",
	"private-dns-name":                             "privateDnsName",
	"private-ip-address":                           "privateIpAddress",
	"product-code":                                 "productCodes>item>productCode",
	"product-code.type":                            "productCodes>item>type",
	"ramdisk-id":                                   "ramdiskId",
	"reason":                                       "reason",
	"root-device-name":                             "rootDeviceName",
	"root-device-type":                             "rootDeviceType",
	"source-dest-check":                            "sourceDestCheck",
	"spot-instance-request-id":                     "spotInstanceRequestId",
	"state-reason-code":                            "stateReason>code",
	"state-reason-message":                         "stateReason>message",
	"subnet-id":                                    "subnetId",
	"tenancy":                                      "placement>tenancy",
	"tpm-support":                                  "tpmSupport",
	"usage-operation":                              "usageOperation",
	"usage-operation-update-time":                  "usageOperationUpdateTime",
	"virtualization-type":                          "virtualizationType",
	"vpc-id":                                       "vpcId",
	"capacity-reservation-specification.capacity-reservation-preference": "capacityReservationSpecification>capacityReservationPreference",
	"network-performance-options.bandwidth-weighting":                    noFact,
	"private-dns-name-options.enable-resource-name-dns-a-record":         "privateDnsNameOptions>enableResourceNameDnsARecord",
	"private-dns-name-options.enable-resource-name-dns-aaaa-record":      "privateDnsNameOptions>enableResourceNameDnsAAAARecord",
	"private-dns-name-options.hostname-type":                             "privateDnsNameOptions>hostnameType",
}

// interfaceFilters are the filters on network interfaces, one of which has to match. Public addresses are not simulated,
// so those on associations select nothing.
func interfaceFilters() filterTable {
	all := filterTable{
		"network-interface.availability-zone":      "placement>availabilityZone",
		"network-interface.attachment.instance-id": "instanceId",
	}
	for name, path := range (filterTable{
		"addresses.primary": "privateIpAddressesSet>item>primary", "addresses.private-dns-name": "privateIpAddressesSet>item>privateDnsName",
		"addresses.private-ip-address": "privateIpAddressesSet>item>privateIpAddress", "attachment.attach-time": "attachment>attachTime",
		"attachment.attachment-id": "attachment>attachmentId", "attachment.delete-on-termination": "attachment>deleteOnTermination",
		"attachment.device-index": "attachment>deviceIndex", "attachment.network-card-index": "attachment>networkCardIndex",
		"attachment.status": "attachment>status", "description": "description", "group-id": "groupSet>item>groupId",
		"group-name": "groupSet>item>groupName", "ipv4-prefixes.ipv4-prefix": "ipv4PrefixSet>item>ipv4Prefix",
		"ipv6-address": "ipv6AddressesSet>item>ipv6Address", "ipv6-addresses.ipv6-address": "ipv6AddressesSet>item>ipv6Address",
		"ipv6-addresses.is-primary-ipv6": "ipv6AddressesSet>item>isPrimaryIpv6", "ipv6-prefixes.ipv6-prefix": "ipv6PrefixSet>item>ipv6Prefix",
		"mac-address": "macAddress", "network-interface-id": "networkInterfaceId", "owner-id": "ownerId",
		"private-dns-name": "privateDnsName", "private-ip-address": "privateIpAddress", "source-dest-check": "sourceDestCheck",
		"status": "status", "subnet-id": "subnetId", "vpc-id": "vpcId",
	}).under("networkInterfaceSet>item") {
		all["network-interface."+name] = path
	}
	for name, element := range map[string]string{"allocation-id": "", "association-id": "", "carrier-ip": "carrierIp",
		"customer-owned-ip": "customerOwnedIp", "ip-owner-id": "ipOwnerId", "public-dns-name": "publicDnsName", "public-ip": "publicIp"} {
		single, each := noFact, noFact
		if element != "" {
			single = "networkInterfaceSet>item>association>" + element
			each = "networkInterfaceSet>item>privateIpAddressesSet>item>association>" + element
		}
		all["network-interface.association."+name], all["network-interface.addresses.association."+name] = single, each
	}
	for _, name := range []string{"deny-all-igw-traffic", "ipv6-native", "operator.managed", "operator.principal", "outpost-arn",
		"public-dns-name", "requester-id", "requester-managed", "tag-key", "tag-value"} {
		all["network-interface."+name] = noFact
	}
	return all
}
