package shop;

import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** {@code /shelf?do=hold&length=…&count=…}, {@code ?do=drop}, {@code ?do=gc}, as the servlet has it. */
@SpringBootApplication
@RestController
public class ShopApplication {
    private final List<byte[][]> held = new ArrayList<>();

    public static void main(String[] args) {
        SpringApplication.run(ShopApplication.class, args);
    }

    @GetMapping("/shelf")
    public synchronized String shelf(
            @RequestParam("do") String order,
            @RequestParam(name = "length", defaultValue = "0") int length,
            @RequestParam(name = "count", defaultValue = "0") int count) {
        switch (order) {
            case "hold":
                byte[][] slots = new byte[count][];
                for (int i = 0; i < count; i++) {
                    slots[i] = new byte[length];
                }
                held.add(slots);
                break;
            case "drop":
                held.clear();
                break;
            case "gc":
                System.gc();
                break;
            default:
                throw new IllegalArgumentException(order);
        }
        return "done";
    }
}
