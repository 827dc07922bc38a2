<?xml version="1.0" encoding="UTF-8"?>
<!-- Text: what each country and each product brought in. Groups are built by keys; sums by recursion. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="UTF-8"/>
  <xsl:key name="by-country" match="customer" use="@country"/>
  <xsl:key name="by-customer" match="order" use="@customer"/>
  <xsl:key name="by-product" match="line" use="@product"/>

  <xsl:template match="/shop">
    <xsl:for-each select="customer[generate-id() = generate-id(key('by-country', @country)[1])]">
      <xsl:sort select="@country"/>
      <xsl:value-of select="concat(@country, ': ', count(key('by-country', @country)), ' customers, ')"/>
      <xsl:call-template name="sum">
        <xsl:with-param name="lines" select="key('by-customer', key('by-country', @country)/@id)/line"/>
      </xsl:call-template>
      <xsl:text>&#10;</xsl:text>
    </xsl:for-each>
    <xsl:for-each select="order/line[generate-id() = generate-id(key('by-product', @product)[1])]">
      <xsl:sort select="sum(key('by-product', @product)/@quantity)" data-type="number" order="descending"/>
      <xsl:sort select="@product"/>
      <xsl:value-of select="concat(@product, ': ', sum(key('by-product', @product)/@quantity), ' pieces, ')"/>
      <xsl:call-template name="sum">
        <xsl:with-param name="lines" select="key('by-product', @product)"/>
      </xsl:call-template>
      <xsl:text>&#10;</xsl:text>
    </xsl:for-each>
  </xsl:template>

  <!-- Halves the lines, so that the recursion is not deep. -->
  <xsl:template name="sum">
    <xsl:param name="lines"/>
    <xsl:choose>
      <xsl:when test="not($lines)">0</xsl:when>
      <xsl:when test="count($lines) = 1"><xsl:value-of select="$lines/@quantity * $lines/@cents"/></xsl:when>
      <xsl:otherwise>
        <xsl:variable name="half" select="floor(count($lines) div 2)"/>
        <xsl:variable name="left">
          <xsl:call-template name="sum">
            <xsl:with-param name="lines" select="$lines[position() &lt;= $half]"/>
          </xsl:call-template>
        </xsl:variable>
        <xsl:variable name="right">
          <xsl:call-template name="sum">
            <xsl:with-param name="lines" select="$lines[position() &gt; $half]"/>
          </xsl:call-template>
        </xsl:variable>
        <xsl:value-of select="$left + $right"/>
      </xsl:otherwise>
    </xsl:choose>
  </xsl:template>
</xsl:stylesheet>
