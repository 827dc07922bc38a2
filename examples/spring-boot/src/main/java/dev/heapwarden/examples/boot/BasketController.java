package dev.heapwarden.examples.boot;

import dev.heapwarden.Heapwarden;
import java.util.concurrent.CompletableFuture;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** A tenant's basket: to fill, on this thread or another, to look at, to empty. */
@RestController
@RequestMapping("/basket")
public class BasketController {
    private final Baskets baskets;

    /** For Spring. */
    public BasketController(Baskets baskets) {
        this.baskets = baskets;
    }

    /** Holds more. */
    @PostMapping
    public String add(@RequestHeader("X-Tenant") String tenant, @RequestParam("kib") int kibibytes) {
        baskets.add(tenant, kibibytes);
        return bytes(tenant);
    }

    /** Holds more, which another thread makes; says which. */
    @PostMapping("/elsewhere")
    public CompletableFuture<String> addElsewhere(
            @RequestHeader("X-Tenant") String tenant, @RequestParam("kib") int kibibytes) {
        return baskets.addElsewhere(tenant, kibibytes);
    }

    /** Bytes held. */
    @GetMapping
    public String bytes(@RequestHeader("X-Tenant") String tenant) {
        return baskets.bytes(tenant) + "\n";
    }

    /** Holds nothing any more. */
    @DeleteMapping
    public String drop(@RequestHeader("X-Tenant") String tenant) {
        baskets.drop(tenant);
        return bytes(tenant);
    }

    /** The account that pays for this request. */
    @GetMapping("/account")
    public String account() {
        return Heapwarden.currentAccount() + "\n";
    }
}
